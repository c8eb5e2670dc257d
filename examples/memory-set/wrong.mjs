// Writes every order into a ledger, once. WRONG: what was written is known to this process only.
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';

const ledger = `${process.env.DIRECTORY}/ledger`;
const seen = new Set();

function write(order) {
  if (seen.has(order)) return;
  appendFileSync(ledger, `${order}\n`); // one line in one call: whole or not there
  seen.add(order);
}

createServer((request, response) => {
  let body = '';
  request.on('data', (part) => (body += part));
  request.on('end', () => {
    write(JSON.parse(body).order);
    response.writeHead(204).end();
  });
}).listen(process.env.PORT, '127.0.0.1');
