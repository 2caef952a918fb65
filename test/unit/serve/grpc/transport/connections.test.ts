import { once } from 'node:events';
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type GrpcConnection, GrpcConnections } from '../../../../../src/serve/grpc/transport/connections.js';

/** Connections over real sockets, and a way to open one more: its client, and the connection at the server. */
async function listening(maxConnections: number, warnings: string[] = []) {
  const logger = {
    log: (_: string, message: string) => void warnings.push(message),
    progress: () => undefined,
  };
  const connections = new GrpcConnections({ maxConnections, logger });
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    if (connections.accept(socket) !== undefined) socket.resume();
    server.emit('taken');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const clients: Socket[] = [];
  onTestFinished(() => {
    for (const client of clients) client.destroy();
    server.close();
  });
  const open = async (): Promise<{
    client: Socket;
    connection: GrpcConnection;
    closed: Promise<unknown>;
  }> => {
    const taken = once(server, 'taken');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    clients.push(client);
    client.on('error', () => undefined).resume();
    const closed = once(client, 'close');
    await Promise.all([taken, once(client, 'connect')]);
    const { port } = client.address() as AddressInfo;
    const connection = connections.find({ remoteAddress: '127.0.0.1', remotePort: port }) as GrpcConnection;
    return { client, connection, closed };
  };
  return { connections, open };
}

describe('GrpcConnections', () => {
  it('closes the longest idle connection for a new one, and refuses the new one where none is idle', async () => {
    const warnings: string[] = [];
    const { connections, open } = await listening(3, warnings);
    const [first, second, third] = [await open(), await open(), await open()];
    connections.begin(first.connection);
    connections.begin(second.connection);
    connections.end(second.connection);
    // The first works, the second was idle last: the third has been idle longest.
    const fourth = await open();
    await third.closed;
    expect(connections.list).toHaveLength(3);
    connections.begin(second.connection);
    connections.begin(fourth.connection);
    const refused = await open();
    await refused.closed;
    expect(warnings).toEqual(['1 gRPC connections refused: 3 are open']);
    connections.end(first.connection);
    await open();
    await first.closed;
    expect([second, fourth].map(({ client }) => client.destroyed)).toEqual([false, false]);
  });

  it('closes a connection that cancels too many calls, and no other', async () => {
    const warnings: string[] = [];
    const { connections, open } = await listening(10, warnings);
    const [patient, hasty] = [await open(), await open()];
    for (let i = 0; i < 2_000; i++) {
      connections.begin(patient.connection);
      connections.end(patient.connection);
    }
    for (let i = 0; i < 200; i++) connections.countCancelled(hasty.connection);
    expect(connections.list.some(({ socket }) => socket.destroyed)).toBe(false);
    connections.countCancelled(hasty.connection);
    await hasty.closed;
    expect(patient.client.destroyed).toBe(false);
    expect(warnings).toEqual(['gRPC connection closed: more than 200 cancelled calls per second']);
  });
});
