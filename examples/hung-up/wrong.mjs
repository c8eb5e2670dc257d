// Packs every order and writes it into a ledger, once. WRONG: an order is free again when its sender hangs up.
//
// The packing goes on. The next delivery finds the order neither packed nor at work, and packs it beside the first.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

const ledger = `${process.env.DIRECTORY}/ledger`;
const packed = new Set(existsSync(ledger) ? readFileSync(ledger, 'utf8').split('\n') : []);
const atWork = new Set();

async function pack(order) {
  await pause(120); // stands for work
  appendFileSync(ledger, `${order}\n`); // one line in one call: whole or not there
  packed.add(order);
}

createServer((request, response) => {
  let body = '';
  request.on('data', (part) => (body += part));
  request.on('end', async () => {
    const { order } = JSON.parse(body);
    if (atWork.has(order)) {
      response.writeHead(409).end(); // the queue delivers it again
      return;
    }
    if (!packed.has(order)) {
      atWork.add(order);
      response.on('close', () => atWork.delete(order)); // answered, or nobody waits any more
      await pack(order);
    }
    response.writeHead(204).end();
  });
}).listen(process.env.PORT, '127.0.0.1');
