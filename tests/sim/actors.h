/*
 * actors: the fake providers and consumers, and what they can be made to do.
 *
 * Every function may be called inside of any verb, as real families would; each looks first whether
 * there is anything to do.
 */
#ifndef RIALTO_SIM_ACTORS_H
#define RIALTO_SIM_ACTORS_H

#include "world.h"

/* --- fake_provider.c --- */
struct sim_provider *provider_new(struct world *w);
void provider_free(struct sim_provider *p);
/* A new catalog, made at random. */
void provider_offer(struct sim_provider *p);
/* Its start succeeds, if it is starting. */
void provider_rise(struct sim_provider *p);
/* Its instance ends, as a crash or because it was told to. */
void provider_fall(struct sim_provider *p);
void provider_call_for(struct sim_provider *p);
void provider_send_away(struct sim_provider *p);
/* By hand: stop it, start it, or both. */
void provider_operate(struct sim_provider *p);
void provider_announce(struct sim_provider *p);
/* Ask on no call, and take such a question back. */
void provider_wonder(struct sim_provider *p);
void provider_know(struct sim_provider *p);
/* Would its items be listed now, as far as the simulator knows? */
bool provider_shows(const struct sim_provider *p);

void job_event(struct job *j);
void job_ask(struct job *j);
/* Take back a question, if there is one. */
void job_unask(struct job *j);
void job_finish(struct job *j);

/* --- fake_consumer.c --- */
void consumer_init(struct sim_consumer *c, struct world *w, const char *name, struct view *v);
void consumer_open(struct sim_consumer *c);
void consumer_attach(struct sim_consumer *c);
void consumer_leave(struct sim_consumer *c);
void consumer_look(struct sim_consumer *c);
void consumer_want_log(struct sim_consumer *c);
void consumer_subscribe(struct sim_consumer *c);
void flight_cancel(struct flight *f);
/* Right or wrong, sometimes twice. */
void flight_answer(struct flight *f);
/* The operator decides. */
void flight_decide(struct flight *f);
/* When its time is over by the simulator's own reckoning; UINT64_MAX for never. */
uint64_t flight_limit(const struct flight *f);
/* A fingerprint of the list as this view shows it. */
uint64_t list_print(struct view *v, enum item_kind kind);

void approver_init(struct approver *a, struct world *w);

/* --- schedule.c --- */
/* With some luck a step that is allowed anywhere, taken inside of a verb. */
void world_interrupt(struct world *w, const struct temper *temper);

/* --- check.c --- */
void check_between_steps(struct world *w);
void check_drained(struct world *w);

#endif
