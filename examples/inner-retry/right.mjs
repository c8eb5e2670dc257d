// Charges an order at the bank, and tries again where the bank does not answer. Every try has the order's own key.
import { createServer } from 'node:http';

const TRIES = 3;

async function charge(order, cents, attempt = 1) {
  try {
    const answer = await fetch(`${process.env.BANK_URL}/charges`, {
      method: 'POST',
      headers: { 'Idempotency-Key': order },
      body: JSON.stringify({ order, cents }),
    });
    if (!answer.ok) throw new Error(`the bank answers ${answer.status}`);
  } catch (error) {
    if (attempt === TRIES) throw error;
    await charge(order, cents, attempt + 1);
  }
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
