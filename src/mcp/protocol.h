/*
 * protocol: the words of MCP, in tables: revisions, methods, members, log levels, error codes.
 *
 * mcp_skim reads any MCP message once and leaves every member that the bridge ever looks at in a
 * slot. Both directions and both eras work on these slots.
 *
 * Nouns: mcp_.
 */
#ifndef RIALTO_MCP_PROTOCOL_H
#define RIALTO_MCP_PROTOCOL_H

#include "base/map.h"
#include "core/catalog.h"
#include "core/peer.h"
#include "wire/rpc.h"

#define MCP_NEWEST_LEGACY "2025-11-25"
#define MCP_MODERN        "2026-07-28"

/* The prefix of MCP's own members of `_meta`, and a notification of the initialize era. */
#define MCP_META_PREFIX          "io.modelcontextprotocol/"
#define MCP_ELICITATION_COMPLETE "notifications/elicitation/complete"
/* The tasks extension of the stateless era, and the `_meta` member that names the task to which a
 * message of the initialize era belongs. */
#define MCP_TASKS        MCP_META_PREFIX "tasks"
#define MCP_RELATED_TASK MCP_META_PREFIX "related-task"

enum mcp_error {
    MCP_ERROR_SERVER = -32000, /* the call failed in the bridge (outcome.c); HTTP refusals */
    MCP_ERROR_TIMEOUT = -32001,
    MCP_ERROR_NO_RESOURCE = -32002, /* legacy era only */
    MCP_ERROR_HEADER = -32020,
    MCP_ERROR_CAPABILITY = -32021,
    MCP_ERROR_VERSION = -32022,
    MCP_ERROR_VISIT_FIRST = -32042, /* legacy era only: the user must visit pages first */
};

/* The slots that mcp_skim fills. */
enum mcp_slot {
    /* params */
    SLOT_NAME,
    SLOT_URI,
    SLOT_ARGUMENTS,
    SLOT_CURSOR,
    SLOT_LEVEL,
    SLOT_REF,
    SLOT_REF_NAME,
    SLOT_REF_URI,
    SLOT_REQUEST_ID,
    SLOT_TOKEN, /* of a progress notification */
    SLOT_META,
    SLOT_META_TOKEN,
    SLOT_META_VERSION,
    SLOT_META_CAPABILITIES,
    SLOT_META_INFO,
    SLOT_META_LOG_LEVEL,
    SLOT_META_SUBSCRIPTION,
    SLOT_VERSION, /* of initialize, in request and result */
    SLOT_CAPABILITIES,
    SLOT_INFO, /* clientInfo or serverInfo */
    SLOT_NOTIFICATIONS,
    SLOT_REQUEST_STATE,
    SLOT_INPUT_RESPONSES,
    SLOT_TASK,
    SLOT_TASK_ID,
    /* result */
    SLOT_INSTRUCTIONS,
    SLOT_ITEMS, /* the four lists, in the order of enum item_kind */
    SLOT_ITEMS_LAST = SLOT_ITEMS + ITEM_KINDS - 1,
    SLOT_NEXT_CURSOR,
    SLOT_RESULT_TYPE,
    SLOT_IS_ERROR,
    SLOT_INPUT_REQUESTS,
    SLOT_SUPPORTED,
    /* a member of params, `_meta` or ref that a lenient reader takes for one of those above */
    SLOT_LOOKALIKE,
    SLOT_COUNT,
};

struct mcp_message {
    struct rpc_message rpc;
    struct json_slot slots[SLOT_COUNT];
};

/* As rpc_skim; a request whose id or progress token is longer than 1 KiB is RPC_INVALID as well. */
MUST_CHECK int mcp_skim(struct span text, struct mcp_message *out);

/* The method that requests an operation, and the member that names what the operation is about. */
struct mcp_operation {
    const char *method;
    enum mcp_slot name_slot;
    const char *name_member; /* for people */
};
extern const struct mcp_operation mcp_operations[OP_COUNT];
/* The four lists. */
struct mcp_list {
    const char *method;
    const char *member;      /* of the result */
    const char *name_member; /* of an item */
    const char *changed;     /* the notification */
};
extern const struct mcp_list mcp_lists[ITEM_KINDS];

/*
 * Is this a request or notification that MCP defines for clients, in any era, or would a lenient
 * server take the method for one? If the era in use does not have the method, the message is then
 * refused and not passed on to a server.
 */
bool mcp_is_own_method(const struct rpc_message *m);
/* May a message with this method be sent twice, even if the first one arrived? What a tool does, or
 * a method that MCP does not have, might then be done twice. */
bool mcp_is_repeatable(const char *method);

/* Append, for people, what is wrong with a member that is a lookalike. */
void mcp_put_lookalike(struct buf *out, struct span member);
/*
 * Could the receiver read these params in another way than we do? Then we must not decide anything
 * by them; the reason is appended for people.
 */
bool mcp_params_mislead(const struct mcp_message *m, struct buf *why);

/* Is this one of the legacy revisions we speak? */
bool mcp_is_legacy_version(struct span version);

/* Index of a log level word, 0 = debug ... 7 = emergency; -1 for others. */
int mcp_level(struct span word);
extern const char *const mcp_levels[8];

/* The ANSWERS_ bits of a client's capabilities object (raw, validated; may be empty). */
unsigned mcp_answers_of(struct span capabilities);
/* The capabilities object that declares these bits. */
void mcp_put_capabilities(struct buf *out, unsigned answers);

/* Append an object with `experimental` and `extensions` of two capabilities objects (raw; may be
 * empty), merged, `a` first; nothing if neither has any. The extension for tasks is left out. */
void mcp_merge_extras(struct buf *out, struct span a, struct span b);

/* The ANSWERS_ bits that a client needs to be sent this request, whose method is a raw JSON string;
 * 0 for unknown methods. */
unsigned mcp_ask_needs(struct span method, struct span params);
/*
 * The params of an ask for an agent of the initialize era, where an elicitation that sends the user
 * to a page has an elicitationId; the stateless era has none. The new elicitationId is made from
 * `id`, which must be unique; `scratch` may hold the params.
 */
struct span mcp_legacy_ask_params(const struct ask *ask, uint64_t id, struct buf *scratch);

/*
 * Append the members of a raw `_meta` object that go on to the next hop ("k":v,"l":w): all except
 * the progress token and members that belong to this hop only.
 */
void mcp_put_foreign_meta(struct buf *out, struct span meta);
/* Append the map's keys as a member, a list of strings; nothing when the map is empty. */
void mcp_put_names(struct buf *out, const char *member, const struct map *names);

/* The position of a member's value in `whole`, the text in which the member was found. */
struct cut mcp_cut(struct span whole, const struct json_slot *slot);
/* What a request of request->op is about: name and arguments with their positions. `scratch` may
 * hold the name; false: `scratch` says what is missing. */
bool mcp_read_named(const struct mcp_message *m, struct request *request, struct buf *scratch);

/* The clientInfo that the params of a request of the stateless era carry; empty when there is none.
 */
struct span mcp_client_of(struct span params);

#endif
