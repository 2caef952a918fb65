import { once } from 'node:events';
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { GrpcConnections } from '../../../../src/serve/grpc/connections.js';

/** Connections over real sockets, and a way to open one more: its client, and its peer name at the server. */
async function listening(max: number, warnings: string[] = []) {
  const logger = {
    log: (_: string, message: string) => void warnings.push(message),
    progress: () => undefined,
  };
  const connections = new GrpcConnections({ max, logger });
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    if (connections.accept(socket)) socket.resume();
    server.emit('taken');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const clients: Socket[] = [];
  onTestFinished(() => {
    for (const client of clients) client.destroy();
    server.close();
  });
  const open = async (): Promise<{ client: Socket; peer: string; closed: Promise<unknown> }> => {
    const taken = once(server, 'taken');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    clients.push(client);
    client.on('error', () => undefined).resume();
    const closed = once(client, 'close');
    await Promise.all([taken, once(client, 'connect')]);
    return { client, peer: `127.0.0.1:${(client.address() as AddressInfo).port}`, closed };
  };
  return { connections, open };
}

describe('GrpcConnections', () => {
  it('makes room by closing the connection that has been idle longest, and refuses where none is idle', async () => {
    const warnings: string[] = [];
    const { connections, open } = await listening(3, warnings);
    const [first, second, third] = [await open(), await open(), await open()];
    const endFirst = connections.begin(first.peer);
    connections.begin(second.peer)(false);
    // The first works, the second was idle last: the third has been idle longest.
    const fourth = await open();
    await third.closed;
    expect(connections.sockets).toHaveLength(3);
    connections.begin(second.peer);
    connections.begin(fourth.peer);
    const refused = await open();
    await refused.closed;
    expect(warnings).toEqual(['gRPC connections refused: 3 are open']);
    endFirst(false);
    await open();
    await first.closed;
    expect([second, fourth].map(({ client }) => client.destroyed)).toEqual([false, false]);
  });

  it('closes a connection that cancels more calls than anybody can want, and no other', async () => {
    const warnings: string[] = [];
    const { connections, open } = await listening(10, warnings);
    const [patient, hasty] = [await open(), await open()];
    for (let i = 0; i < 2_000; i++) connections.begin(patient.peer)(false);
    for (let i = 0; i < 500; i++) connections.begin(hasty.peer)(true);
    expect(connections.sockets.some(({ destroyed }) => destroyed)).toBe(false);
    connections.begin(hasty.peer)(true);
    await hasty.closed;
    expect(patient.client.destroyed).toBe(false);
    expect(warnings).toEqual(['a gRPC connection was closed: more than 500 cancelled calls in a second']);
  });
});
