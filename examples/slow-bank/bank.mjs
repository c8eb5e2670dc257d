// Stands for a bank: it charges every order it is handed, and nothing twice under one Idempotency-Key.
import { createServer } from 'node:http';

const charges = new Map();
const answered = new Set();

createServer((request, response) => {
  if (request.method === 'GET') {
    response.end(JSON.stringify(Object.fromEntries(charges)));
    return;
  }
  let body = '';
  request.on('data', (part) => (body += part));
  request.on('end', () => {
    const key = request.headers['idempotency-key'];
    if (!answered.has(key)) {
      answered.add(key);
      const { order } = JSON.parse(body);
      charges.set(order, (charges.get(order) ?? 0) + 1);
    }
    response.writeHead(201).end('{"charged": true}');
  });
}).listen(process.env.PORT, '127.0.0.1');
