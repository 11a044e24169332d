/*
 * grants: what the pages of a session may do, and the tool by which agents ask for more.
 */
#ifndef RIALTO_BROWSER_GRANTS_H
#define RIALTO_BROWSER_GRANTS_H

#include "browser/kept.h"
#include "browser/parts.h"

struct page_message;

enum grant_kind { GRANT_ONCE, GRANT_SESSION, GRANT_PERSISTENT };

struct grant {
    struct list node;
    enum grant_kind kind;
    char *origin; /* for whose pages; NULL: it came from a program on this machine, for all */
    char name[];
};

void grant_free(struct grant *g);
/* What one site's user granted holds for the pages of that site. */
bool grant_concerns(const struct grant *g, const struct page *page);
/* `page` may be NULL: any of them. */
bool session_has(const struct browser_session *s, const struct page *page, struct span capability);
void session_grant(struct browser_session *s, const struct page *page, struct span array,
                   enum grant_kind kind);
void session_revoke(struct browser_session *s, const struct page *page, struct span array);
/* What its user granted for good before. */
void session_recall(struct browser_session *s, const struct page *page);
void session_use_once(struct browser_session *s, const struct page *page, const struct tool *tool);
enum grant_kind grant_kind_of(struct span params);
/* The meta-tool. */
void grants_open(struct browser_session *s, struct call *call, struct span arguments);
void grants_answered(struct page_errand *e, const struct page_message *m);
void grants_late(struct page_errand *e);
void put_meta_tool(struct catalog *c);

#define META_TOOL "__btcp_request_capabilities"

#endif
