/*
 * check: checks of values beyond the types of the schema.
 *
 * The first group are schema_check_fn: NULL when the text is fine, else a message that never
 * repeats the text (it may be a secret). The others check several keys together.
 */
#ifndef RIALTO_CONFIG_CHECK_H
#define RIALTO_CONFIG_CHECK_H

#include "config/schema.h"

schema_check_fn check_alias, check_name, check_not_empty, check_path, check_whole_path, check_port;
schema_check_fn check_agent, check_address, check_url, check_bus_url, check_origin, check_host,
    check_host_pattern, check_token_hash, check_time, check_web_url, check_scope;
schema_check_fn check_public_url, check_password;
schema_check_fn check_capability, check_unix_address;
schema_check_fn check_names_pattern, check_tool_pattern, check_pattern, check_control;
schema_check_fn check_pointer, check_folder, check_endpoint;
schema_check_fn check_env_name, check_header_name, check_header_value;

/* Has the server a command or an address, and no key that only makes sense for the other kind? */
schema_entry_fn check_server;
/* An address to listen on must be there. */
schema_entry_fn check_listen;
/* A prompt must be named. */
schema_entry_fn check_prompt;
/* A capture rule must name its tools. */
schema_entry_fn check_capture;
/* A rule must have `then`, and at most one test of an argument. */
schema_entry_fn check_rule;
/* An issuer must have a name and keys. */
schema_entry_fn check_jwt;
/* A token must have a name and a hash. */
schema_entry_fn check_token;

/* Checks the document as a whole: names that clash, references to names that do not exist. Also
 * sets fields that depend on several keys, such as servers that `enabled_servers` leaves out. */
void check_config(struct schema_read *r, const struct value *root, struct config *c);

#endif
