/*
 * commands: every subcommand, each defined in the file of its name. Exceptions: commands that edit
 * servers are in servers.c, start, stop and restart in start.c, trace in calls.c, doctor in
 * doctor/doctor.c.
 *
 * To add one: a file, a line here, and a line in table.c.
 *
 * Nouns: command_. Files: table.
 */
#ifndef RIALTO_CMD_COMMANDS_H
#define RIALTO_CMD_COMMANDS_H

#include "cmd/cmd.h"

extern const struct command command_add;
extern const struct command command_add_json;
extern const struct command command_approvals;
extern const struct command command_audit;
extern const struct command command_browser;
extern const struct command command_bus;
extern const struct command command_call;
extern const struct command command_calls;
extern const struct command command_trace;
extern const struct command command_replay;
extern const struct command command_check;
extern const struct command command_completion;
extern const struct command command_conductor;
extern const struct command command_config;
extern const struct command command_demo_server;
extern const struct command command_disable;
extern const struct command command_doctor;
extern const struct command command_enable;
extern const struct command command_help;
extern const struct command command_import;
extern const struct command command_inspect;
extern const struct command command_lock;
extern const struct command command_login;
extern const struct command command_logout;
extern const struct command command_logs;
extern const struct command command_pair;
extern const struct command command_prompts;
extern const struct command command_reload;
extern const struct command command_remove;
extern const struct command command_rename;
extern const struct command command_resources;
extern const struct command command_restart;
extern const struct command command_sandbox;
extern const struct command command_serve;
extern const struct command command_setup;
extern const struct command command_start;
extern const struct command command_status;
extern const struct command command_stdio;
extern const struct command command_stop;
extern const struct command command_token;
extern const struct command command_tools;
extern const struct command command_top;
extern const struct command command_upgrade;
extern const struct command command_version;

#endif
