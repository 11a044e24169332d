/*
 * actors: the actions of the fake providers and consumers.
 *
 * Every function may be called inside any verb, as in real families; each does nothing if it does
 * not apply.
 */
#ifndef RIALTO_SIM_ACTORS_H
#define RIALTO_SIM_ACTORS_H

#include "world.h"

/* --- fake_provider.c --- */
struct sim_provider *provider_new(struct world *w);
void provider_free(struct sim_provider *p);
/* Publishes a new random catalog. */
void provider_offer(struct sim_provider *p);
/* The start succeeds, if the provider is starting. */
void provider_rise(struct sim_provider *p);
/* The instance ends, by a crash or because it was told to stop. */
void provider_fall(struct sim_provider *p);
void provider_call_for(struct sim_provider *p);
void provider_send_away(struct sim_provider *p);
/* As the operator: stops the provider, starts it, or both. */
void provider_operate(struct sim_provider *p);
void provider_announce(struct sim_provider *p);
/* Nobody is subscribed to its resource any more: it has refused that, or it leaves. */
void provider_forget_subscribers(const struct sim_provider *p);
/* Asks a question that belongs to no call; provider_know takes such a question back. */
void provider_wonder(struct sim_provider *p);
void provider_know(struct sim_provider *p);
/* Must its items be listed now, as far as the simulator knows? */
bool provider_shows(const struct sim_provider *p);

void job_event(struct job *j);
void job_ask(struct job *j);
/* Takes back a question, if there is one. */
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
/* Answers a question, sometimes with an unknown key, sometimes twice. */
void flight_answer(struct flight *f);
/* The operator decides. */
void flight_decide(struct flight *f);
/* The call's deadline as the simulator calculates it; UINT64_MAX for none. */
uint64_t flight_limit(const struct flight *f);
/* A fingerprint of the list as this view shows it. */
uint64_t list_print(struct view *v, enum item_kind kind);

void approver_init(struct approver *a, struct world *w);

/* --- schedule.c --- */
/* At random, takes a step that is allowed anywhere, inside a verb. */
void world_interrupt(struct world *w, const struct temper *temper);

/* --- check.c --- */
void check_between_steps(struct world *w);
void check_drained(struct world *w);

#endif
