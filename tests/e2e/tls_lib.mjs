// Certificates for the tests, made by the openssl command in a temporary folder.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { tempDir } from './lib.mjs';

const HERE = 'DNS:localhost,IP:127.0.0.1';
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

function openssl(dir, ...args) {
  return execFileSync('openssl', args, { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] }).toString();
}

/**
 * A certificate authority for tests: `file` and `text` are its certificate, `sign` returns the
 * {cert, key} files of a server.
 */
export class Authority {
  constructor(name = 'authority') {
    this.dir = tempDir();
    this.file = path.join(this.dir, 'ca.pem');
    openssl(this.dir, 'req', '-x509', ...newKey, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2',
      '-subj', `/CN=${name}`);
    this.text = fs.readFileSync(this.file, 'utf8');
  }

  /** `days` below zero: the certificate has expired. */
  sign(name, { names = HERE, days = 2 } = {}) {
    const at = (end) => path.join(this.dir, `${name}.${end}`);
    openssl(this.dir, 'req', ...newKey, '-keyout', at('key'), '-out', at('csr'), '-subj', `/CN=${name}`,
      '-addext', `subjectAltName=${names}`);
    openssl(this.dir, 'x509', '-req', '-in', at('csr'), '-CA', 'ca.pem', '-CAkey', 'ca.key',
      '-CAcreateserial', '-copy_extensions', 'copy', '-days', `${days}`, '-out', at('pem'));
    fs.chmodSync(at('key'), 0o600);
    return { cert: at('pem'), key: at('key') };
  }
}
