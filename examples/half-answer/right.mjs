// Writes every order into a journal, once, and makes out a receipt. A receipt that breaks off changes nothing: the
// order is written, and who sends it again gets another receipt.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

const journal = `${process.env.DIRECTORY}/journal`;
const lines = existsSync(journal) ? readFileSync(journal, 'utf8').split('\n') : [];
const written = new Set(lines.map((line) => line.replace('written ', '')));

function write(order) {
  if (written.has(order)) return;
  appendFileSync(journal, `written ${order}\n`); // one line in one call: whole or not there
  written.add(order);
}

createServer((request, response) => {
  let body = '';
  request.on('data', (part) => (body += part));
  request.on('end', async () => {
    const { order } = JSON.parse(body);
    await pause(150); // stands for work
    write(order);
    response.writeHead(200, { 'Content-Type': 'text/plain' });
    for (const line of ['Your order', order, 'Thank you']) {
      response.write(`${line}\n`);
      await pause(20); // stands for lines that are made one by one
    }
    response.end();
  });
}).listen(process.env.PORT, '127.0.0.1');
