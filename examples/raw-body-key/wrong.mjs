// Puts every order into an outbox of files, once. WRONG: the file is named by a hash of the bytes that came.
//
// Another serialiser writes the same order in other bytes: other spaces, another order of its members.
import { createHash } from 'node:crypto';
import { linkSync, mkdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';

const outbox = `${process.env.DIRECTORY}/outbox`;
mkdirSync(outbox, { recursive: true });

function put(body) {
  const { order } = JSON.parse(body);
  const name = createHash('sha256').update(body).digest('hex');
  const draft = `${process.env.DIRECTORY}/draft-${process.pid}`;
  writeFileSync(draft, `${order}\n`);
  try {
    linkSync(draft, `${outbox}/${name}`); // whole, and only if there is none
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  unlinkSync(draft);
}

createServer((request, response) => {
  let body = '';
  request.on('data', (part) => (body += part));
  request.on('end', () => {
    const { message } = JSON.parse(body);
    put(Buffer.from(message.data, 'base64').toString());
    response.writeHead(204).end();
  });
}).listen(process.env.PORT, '127.0.0.1');
