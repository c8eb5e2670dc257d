// Charges an order at the bank. A slow bank is asked again, under the same key: it knows whether it has charged.
import { createServer } from 'node:http';

const PATIENCE_MS = 1000;

async function charge(order, cents) {
  const answer = await fetch(`${process.env.BANK_URL}/charges`, {
    method: 'POST',
    headers: { 'Idempotency-Key': order },
    body: JSON.stringify({ order, cents }),
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  if (!answer.ok) throw new Error(`the bank answers ${answer.status}`);
}

createServer((request, response) => {
  let body = '';
  request.on('data', (part) => (body += part));
  request.on('end', async () => {
    try {
      const { order, cents } = JSON.parse(body);
      await charge(order, cents);
      response.writeHead(204).end();
    } catch (error) {
      console.error(error.message); // the queue delivers it again
      response.writeHead(503).end();
    }
  });
}).listen(process.env.PORT, '127.0.0.1');
