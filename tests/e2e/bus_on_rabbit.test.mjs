// All scenarios of the bus, on a real RabbitMQ.
import { after } from 'node:test';
import { startRabbit } from './brokers.mjs';
import { rabbitRig, runAll } from './bus_rig.mjs';
import { attachmentScenarios } from './bus_attachment_scenarios.mjs';
import { changeScenarios } from './bus_change_scenarios.mjs';
import { fleetScenarios } from './bus_fleet_scenarios.mjs';
import { handbackScenarios } from './bus_handback_scenarios.mjs';
import { messageScenarios } from './bus_message_scenarios.mjs';
import { proxyScenarios } from './bus_proxy_scenarios.mjs';
import { startShared, workerScenarios } from './bus_worker_scenarios.mjs';

const rabbit = await startRabbit({ after });
const rig = rabbitRig({ after }, rabbit);
await startShared(rig);
runAll(rig, messageScenarios, workerScenarios, proxyScenarios, fleetScenarios, changeScenarios, handbackScenarios, attachmentScenarios);
