// A link of some length to a server on this machine: what either side sends arrives half of the round trip later.
import { connect, createServer } from 'node:net';
import { setTimeout } from 'node:timers';

/** Returns the host of this end of a link to `host`, and how to stop it. */
export async function serveLink(host, roundTripMs) {
  const [, address, port] = /^(.*):(\d+)$/.exec(host);
  const sockets = new Set();
  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ host: address, port: Number(port), noDelay: true });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ]) {
      sockets.add(from);
      from.on('data', (chunk) => setTimeout(() => to.write(chunk), roundTripMs / 2));
      from.on('end', () => setTimeout(() => to.end(), roundTripMs / 2));
      from.on('error', () => to.destroy());
      from.on('close', () => sockets.delete(from));
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${server.address().port}`,
    stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
