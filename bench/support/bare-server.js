// A server that knows nothing: to each call it sends the next of some buffers of the sizes that it is given.
import http2 from 'node:http2';

const [port, ...sizes] = process.argv.slice(2).map(Number);
const bodies = sizes.map((size) => Buffer.alloc(size, 'x'));
let next = 0;
const server = http2.createServer();
server.on('stream', (stream) => {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.on('error', () => undefined);
  stream.end(bodies[next++ % bodies.length]);
});
server.listen(port, '127.0.0.1');
