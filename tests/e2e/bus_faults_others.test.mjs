// What breaks and what must not, on the embedded bus and with JetStream: see bus_faults.mjs.
import { runFaults } from './bus_faults.mjs';

runFaults('embedded', 'NATS with JetStream');
