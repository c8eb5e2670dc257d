'use strict';
// Google's Firestore emulator: the one that FIRESTORE_EMULATOR_HOST names, or one of the tests' own.

const { execFileSync, spawn } = require('node:child_process');
const net = require('node:net');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');

const PACKAGE = 'google-cloud-cli-firestore-emulator';
const CLASS = 'com.google.cloud.datastore.emulator.firestore.CloudFirestore';
const NOT_RUN = `NOT RUN: Firestore in Node: no emulator (install ${PACKAGE} and Java, or set FIRESTORE_EMULATOR_HOST)`;
const START_MS_MAX = 40_000;

/**
 * What ends the emulator that was started, and a reason to skip where there is none. With SEMEL_TEST_REQUIRE=firestore
 * that is an error.
 */
async function startEmulator() {
  if (process.env.FIRESTORE_EMULATOR_HOST) return { skip: false, stop() {} };
  const java = process.env.JAVA_HOME ? path.join(process.env.JAVA_HOME, 'bin/java') : 'java';
  const jar = said('dpkg', ['-L', PACKAGE]).split('\n').find((line) => line.endsWith('cloud-firestore-emulator.jar'));
  if (!jar || !said(java, ['--version'])) {
    if ((process.env.SEMEL_TEST_REQUIRE ?? '').split(',').includes('firestore')) throw new Error(NOT_RUN);
    process.on('exit', () => console.log(NOT_RUN));
    return { skip: NOT_RUN, stop() {} };
  }
  const port = await freePort();
  const emulator = spawn(java, ['-cp', jar, CLASS, '--host=127.0.0.1', `--port=${port}`], { stdio: 'ignore' });
  await listening(port);
  process.env.FIRESTORE_EMULATOR_HOST = `127.0.0.1:${port}`;
  return { skip: false, stop: () => emulator.kill('SIGKILL') };
}

/** What a program prints; nothing if it is not there or fails. */
function said(program, words) {
  try {
    return execFileSync(program, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    return '';
  }
}

async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function listening(port) {
  const deadline = performance.now() + START_MS_MAX;
  while (!(await connects(port))) {
    if (performance.now() > deadline) throw new Error(`nobody listens on port ${port}`);
    await sleep(50);
  }
}

function connects(port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true) || socket.destroy()).once('error', () => resolve(false));
  });
}

module.exports = { startEmulator };
