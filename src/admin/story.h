/*
 * story: recorded calls as people see them: one in full, its story, one made again, and those in a
 * file. Shared by the files of admin/ that show calls: calls.c, story.c, replay.c and
 * record_file.c; inside.h has what the others use.
 *
 * Nouns: story_, calls_, replay_, record_file_. Files: calls, replay, record_file.
 */
#ifndef RIALTO_ADMIN_STORY_H
#define RIALTO_ADMIN_STORY_H

#include "admin/inside.h"

/* --- calls.c --- */
/* All that is known of one call, as an object. */
void calls_put(struct buf *out, const struct admin *a, const struct record *rec);
/* The clientInfo of the caller; empty when the caller gave no name. */
struct span calls_client(const struct admin *a, const struct record *rec);
/* The member `client`: name and version of the caller's program, as it says itself. */
void calls_put_client(struct buf *out, const struct admin *a, const struct record *rec);
/* `text`, redacted and cut to `max` bytes, in whole characters. */
void calls_put_text(struct buf *out, const char *name, struct span text, size_t max);
/* JSON when the body is whole, else text; redacted. false: a part of it is missing. */
bool calls_put_body(struct buf *out, const char *name, const struct admin *a,
                    const struct record_body *body);

/* --- record_file.c --- */
/* `path` may be NULL: there is no file. */
void record_file_begin(struct admin *a, const char *path, uint64_t size);
void record_file_end(struct admin *a);

/* --- story.c --- */
/* The members "parties" and "story" of a recorded call. */
void story_put(struct buf *out, const struct admin *a, const struct record *rec);

/* --- replay.c --- */
/* The member "replayable": true, or why the call cannot be made again. */
void replay_put_member(struct buf *out, const struct admin *a, const struct record *rec);
void replay_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                   const struct api_path *path, const struct record *rec);
void replay_end_all(struct admin *a);

#endif
