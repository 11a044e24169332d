/*
 * grants: what the pages of a session may do, and the tool with which agents ask for more.
 */
#ifndef RIALTO_BROWSER_GRANTS_H
#define RIALTO_BROWSER_GRANTS_H

#include "browser/page.h"

struct page_message;

enum grant_kind { GRANT_ONCE, GRANT_SESSION, GRANT_PERSISTENT };

struct grant {
    struct list node;
    enum grant_kind kind;
    char *origin; /* holds for pages of this origin; NULL: for all (granted by a program) */
    char name[];
};

void grants_drop(struct grant *g);
/* Does the grant hold for this page? A grant of one origin holds for pages of that origin and for
 * pages without one (programs). */
bool grants_concern(const struct grant *g, const struct page *page);
/* Is this capability granted to the page, or with `page` NULL to any page of the session? */
bool grants_cover(const struct browser_session *s, const struct page *page, struct span capability);
void grants_add(struct browser_session *s, const struct page *page, struct span array,
                enum grant_kind kind);
void grants_revoke(struct browser_session *s, const struct page *page, struct span array);
/* Adds the persistent grants of the page's origin to the session. */
void grants_recall(struct browser_session *s, const struct page *page);
void grants_use_once(struct browser_session *s, const struct page *page, const struct tool *tool);
enum grant_kind grants_kind(struct span params);
/* The meta-tool: a call to it, the page's answer to our question, and the question's timeout. */
void grants_open(struct browser_session *s, struct call *call, struct span arguments);
void grants_answered(struct page_request *r, const struct page_message *m);
void grants_late(struct page_request *r);
/* Called after the page granted something unasked: ends the questions that this answers. */
void grants_settle(struct page *p);

#endif
