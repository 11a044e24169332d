// All scenarios of the bus, on a real nats-server; those of proxies and fleets also with JetStream.
import { after } from 'node:test';
import { startNats } from './brokers.mjs';
import { natsRig, runAll } from './bus_rig.mjs';
import { attachmentScenarios } from './bus_attachment_scenarios.mjs';
import { changeScenarios } from './bus_change_scenarios.mjs';
import { fleetScenarios } from './bus_fleet_scenarios.mjs';
import { handbackScenarios } from './bus_handback_scenarios.mjs';
import { messageScenarios } from './bus_message_scenarios.mjs';
import { proxyScenarios } from './bus_proxy_scenarios.mjs';
import { startShared, workerScenarios } from './bus_worker_scenarios.mjs';

const nats = await startNats({ after });
const lasting = await startNats({ after }, { jetstream: true });
const rig = natsRig({ after }, nats);
await startShared(rig);
runAll(rig, messageScenarios, workerScenarios, proxyScenarios, fleetScenarios, changeScenarios, handbackScenarios, attachmentScenarios);
runAll(natsRig({ after }, lasting), proxyScenarios, fleetScenarios);
