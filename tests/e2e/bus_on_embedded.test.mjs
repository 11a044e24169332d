// All scenarios of the bus, on the embedded bus over its socket.
import { after } from 'node:test';
import { embeddedRig, runAll } from './bus_rig.mjs';
import { attachmentScenarios } from './bus_attachment_scenarios.mjs';
import { changeScenarios } from './bus_change_scenarios.mjs';
import { fleetScenarios } from './bus_fleet_scenarios.mjs';
import { handbackScenarios } from './bus_handback_scenarios.mjs';
import { messageScenarios } from './bus_message_scenarios.mjs';
import { proxyScenarios } from './bus_proxy_scenarios.mjs';
import { startShared, workerScenarios } from './bus_worker_scenarios.mjs';

const rig = embeddedRig({ after });
await startShared(rig);
runAll(rig, messageScenarios, workerScenarios, proxyScenarios, fleetScenarios, changeScenarios, handbackScenarios, attachmentScenarios);
