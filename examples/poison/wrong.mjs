// Writes every order into a ledger, once. WRONG: what has no order is refused, and the queue brings it for ever.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const ledger = `${process.env.DIRECTORY}/ledger`;
const seen = new Set(existsSync(ledger) ? readFileSync(ledger, 'utf8').split('\n') : []);

function write(order) {
  if (seen.has(order)) return;
  appendFileSync(ledger, `${order}\n`); // one line in one call: whole or not there
  seen.add(order);
}

createServer((request, response) => {
  let body = '';
  request.on('data', (part) => (body += part));
  request.on('end', () => {
    const { order } = JSON.parse(body);
    if (!order) {
      response.writeHead(400).end('an order has a number');
      return;
    }
    write(order);
    response.writeHead(204).end();
  });
}).listen(process.env.PORT, '127.0.0.1');
