// The container image: built without a daemon, unpacked by umoci, run by runc as an unprivileged user in a root that
// cannot be written to; with NATS and with RabbitMQ, as compose.yaml puts them together.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { freePort, startNats, startRabbit } from '../e2e/brokers.mjs';
import { root, start, tempDir, until } from '../e2e/lib.mjs';
import { commandsOf } from '../e2e/shown.mjs';
import { dist, needRoot, portable, run, runBeside, version } from './lib.mjs';

const arch = process.arch === 'arm64' ? 'arm64' : 'amd64';
const machine = process.arch === 'arm64' ? 'aarch64' : 'x86_64';

let layout;
/** The archive, unpacked. */
function image() {
  if (layout) return layout;
  portable('x86_64');
  portable('aarch64');
  run('packaging/image/build', []);
  layout = path.join(tempDir(), 'layout');
  fs.mkdirSync(layout);
  run('tar', ['-C', layout, '-xf', dist(`rialto-image-${version}.tar`)]);
  return layout;
}

test('the archive has an image for both machines, and two builds are the same bytes', () => {
  const blob = (d) => JSON.parse(fs.readFileSync(path.join(image(), 'blobs', d.digest.replace(':', '/'))));
  const index = JSON.parse(fs.readFileSync(path.join(image(), 'index.json')));
  const { manifests } = blob(index.manifests[0]);
  assert.deepEqual(manifests.map((m) => m.platform.architecture), ['amd64', 'arm64']);
  for (const m of manifests) {
    const { config, os } = blob(blob(m).config);
    assert.equal(os, 'linux');
    assert.equal(config.User, '65532:65532');
  }
  const before = fs.readFileSync(dist(`rialto-image-${version}.tar`));
  run('packaging/image/build', []);
  assert.ok(before.equals(fs.readFileSync(dist(`rialto-image-${version}.tar`))));
});

/** A bundle for runc from the image for this machine. umoci needs a layout whose tag is an image, not an index. */
function bundle(change = () => {}) {
  needRoot();
  const own = path.join(tempDir(), 'own');
  fs.cpSync(image(), own, { recursive: true });
  const index = JSON.parse(fs.readFileSync(path.join(own, 'index.json')));
  const list = JSON.parse(fs.readFileSync(path.join(own, 'blobs', index.manifests[0].digest.replace(':', '/'))));
  const manifest = list.manifests.find((m) => m.platform.architecture === arch);
  index.manifests = [{ ...manifest, annotations: { 'org.opencontainers.image.ref.name': 'own' } }];
  fs.writeFileSync(path.join(own, 'index.json'), JSON.stringify(index));
  const folder = path.join(tempDir(), 'bundle');
  run('umoci', ['unpack', '--image', `${own}:own`, folder]);
  const file = path.join(folder, 'config.json');
  const config = JSON.parse(fs.readFileSync(file));
  config.process.terminal = false;
  config.root.readonly = true;
  // The host's loopback stands for the network that compose makes.
  config.linux.namespaces = config.linux.namespaces.filter((n) => n.type !== 'network');
  config.mounts = config.mounts.filter((m) => !['/sys', '/etc/resolv.conf', '/etc/hosts', '/etc/hostname'].includes(m.destination));
  config.mounts.push(
    { destination: '/run/rialto', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=0700', 'uid=65532', 'gid=65532'] },
    { destination: '/var/lib/rialto', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=0700', 'uid=65532', 'gid=65532'] });
  config.linux.resources = {};
  delete config.linux.cgroupsPath;
  change(config, folder);
  fs.writeFileSync(file, JSON.stringify(config));
  return { folder, config };
}

/** Runs a bundle: {exec(...words), stop()}. */
function container(t, folder) {
  const id = `rialto-${process.pid}-${path.basename(path.dirname(folder))}`;
  const state = path.join(folder, 'state');
  const runc = (...words) => ['runc', ['--root', state, ...words]];
  const child = start(...runc('run', '--bundle', folder, id), { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stdout.on('data', (d) => { said += d; });
  child.stderr.on('data', (d) => { said += d; });
  const ended = new Promise((resolve) => { child.on('close', (code) => resolve(code)); });
  let stopping;
  const stop = () => {
    stopping ??= (async () => {
      spawnSync(...runc('kill', id, 'TERM'));
      const code = await ended;
      spawnSync(...runc('delete', '--force', id));
      return code;
    })();
    return stopping;
  };
  t.after(stop);
  return { said: () => said, exec: (...words) => runBeside(...runc('exec', id, ...words)), stop };
}

/** Replaces the image's configuration in the bundle by another one, with another port. */
function configure(folder, config, at) {
  const file = path.join(folder, 'rootfs/etc/rialto/rialto.yaml');
  fs.writeFileSync(file, fs.readFileSync(path.join(root, config), 'utf8').replace('0.0.0.0:8765', `127.0.0.1:${at}`));
}

test('the image runs as it is: the demo answers, alive, unprivileged, nothing is written to the root', async (t) => {
  const at = await freePort();
  const { folder, config } = bundle((c, f) => configure(f, 'packaging/image/rialto.yaml', at));
  assert.deepEqual(config.process.args, ['/usr/bin/rialto', 'serve']);
  assert.equal(config.process.user.uid, 65532);
  const there = container(t, folder);
  await until('the daemon', () => /listening on/.test(there.said()) || /error/.test(there.said()), 20_000);
  assert.match(there.said(), /listening on/, there.said());
  assert.equal(await there.exec('/usr/bin/rialto', 'status', '--alive'), 'alive\n');
  assert.match(await there.exec('/usr/bin/rialto', 'call', 'demo', 'hash', 'text=rialto'), /[0-9a-f]{64}/);
  await assert.rejects(there.exec('/usr/bin/rialto-shim'), /a part of 'rialto stdio'/);
  assert.deepEqual(await (await fetch(`http://127.0.0.1:${at}/healthz`)).json(), { status: 'ok' });
  assert.equal(await there.stop(), 0);
});

// The documents showed two commands that nobody had run. Docker needs a daemon; podman takes the same commands without one.
test('what docs/install.md says to Docker, said to podman', async (t) => {
  image();
  const dir = tempDir();
  const at = await freePort();
  fs.mkdirSync(path.join(dir, 'bin'));
  fs.symlinkSync(run('sh', ['-c', 'command -v podman']).trim(), path.join(dir, 'bin/docker'));
  fs.writeFileSync(path.join(dir, 'storage.conf'), `[storage]\ndriver = "vfs"\ngraphroot = "${dir}/store"\nrunroot = "${dir}/run"\n`);
  fs.writeFileSync(path.join(dir, 'containers.conf'), '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n'
    + `[engine]\ncgroup_manager = "cgroupfs"\nruntime = "runc"\ntmp_dir = "${dir}/tmp"\n[network]\nnetwork_config_dir = "${dir}/networks"\n`);
  const env = { ...process.env, PATH: `${dir}/bin:${process.env.PATH}`, CONTAINERS_CONF: path.join(dir, 'containers.conf'), CONTAINERS_STORAGE_CONF: path.join(dir, 'storage.conf') };
  const [load, serves, ...none] = commandsOf('the image');
  assert.deepEqual(none, []);
  run('sh', ['-c', load], { env });
  const child = start('sh', ['-c', `exec ${serves.replace('8765:', `${at}:`)}`], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const s of [child.stdout, child.stderr]) s.on('data', (d) => { said += d; });
  const ended = new Promise((resolve) => { child.on('close', resolve); });
  await until('its answer', async () => (await fetch(`http://127.0.0.1:${at}/healthz`).catch(() => null))?.ok, 30_000)
    .catch((e) => { throw new Error(`${e.message}\n${said}`); });
  child.kill('SIGTERM');
  assert.equal(await ended, 0, said);
});

for (const [name, broker, url] of [['NATS', startNats, (b) => b.url], ['RabbitMQ', startRabbit, (b) => b.url()]]) {
  test(`with ${name} beside it, as in compose.yaml`, async (t) => {
    const bus = await broker(t);
    const at = await freePort();
    const { folder } = bundle((c, f) => {
      configure(f, 'packaging/image/bus.yaml', at);
      c.process.env.push(`RIALTO_BUS_URL=${url(bus)}`);
    });
    const there = container(t, folder);
    await until('the bus', async () => {
      const answer = await fetch(`http://127.0.0.1:${at}/status`).catch(() => null);
      return answer?.ok && (await answer.json()).bus?.up;
    }, 30_000).catch((e) => { throw new Error(`${e.message}\n${there.said()}`); });
    assert.equal(await there.stop(), 0);
  });
}

test('compose.yaml names this version, and its health check is the one that a server cannot turn red', () => {
  const text = fs.readFileSync(path.join(root, 'packaging/image/compose.yaml'), 'utf8');
  assert.ok(text.includes(`localhost/rialto:${version}`));
  const read = run('/usr/bin/python3', ['-c', 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)'], { input: text });
  const { services } = JSON.parse(read);
  for (const name of ['rialto-rabbitmq', 'rialto-nats']) {
    assert.deepEqual(services[name].healthcheck.test, ['CMD', '/usr/bin/rialto', 'status', '--alive']);
  }
  assert.match(fs.readFileSync(path.join(root, 'packaging/image/Dockerfile'), 'utf8'), /HEALTHCHECK.*"status", "--alive"/);
});
