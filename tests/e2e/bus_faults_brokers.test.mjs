// What breaks and what must not, on real brokers: see bus_faults.mjs.
import { runFaults } from './bus_faults.mjs';

runFaults('RabbitMQ', 'NATS');
