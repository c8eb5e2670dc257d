// Writes every order into a journal, once, and makes out a receipt. WRONG: who did not get it all may order again.
//
// The order is written before the receipt begins. A receipt that breaks off says nothing about the order.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

const journal = `${process.env.DIRECTORY}/journal`;
const written = new Set();
for (const line of existsSync(journal) ? readFileSync(journal, 'utf8').split('\n') : []) {
  const [what, order] = line.split(' ');
  if (what === 'written') written.add(order);
  if (what === 'forgotten') written.delete(order);
}

function note(what, order) {
  appendFileSync(journal, `${what} ${order}\n`); // one line in one call: whole or not there
}

function write(order) {
  if (written.has(order)) return;
  note('written', order);
  written.add(order);
}

function forget(order) {
  note('forgotten', order);
  written.delete(order);
}

createServer((request, response) => {
  let body = '';
  request.on('data', (part) => (body += part));
  request.on('end', async () => {
    const { order } = JSON.parse(body);
    await pause(150); // stands for work
    write(order);
    response.on('close', () => {
      if (response.headersSent && !response.writableFinished) forget(order); // it will be sent again
    });
    response.writeHead(200, { 'Content-Type': 'text/plain' });
    for (const line of ['Your order', order, 'Thank you']) {
      response.write(`${line}\n`);
      await pause(20); // stands for lines that are made one by one
    }
    response.end();
  });
}).listen(process.env.PORT, '127.0.0.1');
