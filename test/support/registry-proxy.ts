/** A real registry seen through a server that writes down what it is asked, and can break what passes. */
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

export interface ProxiedRequest {
  method: string;
  /** With its query. */
  path: string;
  /** Of the answer; 0 while there is none. */
  status: number;
}

/** What happens to a request in place of being passed on, or on its way. */
export type Disturbance =
  | { status: number; headers?: Record<string, string>; body?: string }
  /** Resets the connection once the request is read. */
  | { reset: true }
  /** Cuts the connection when the registry has been given this many bytes of the body. */
  | { cutRequestAfter: number };

export interface RegistryProxy {
  /** `127.0.0.1:PORT` */
  host: string;
  requests: ProxiedRequest[];
  /** Requests as `METHOD what`, without repository, digests and sessions, counted. */
  counts(): Record<string, number>;
  /** Digests of the blobs that were sent whole, in order. */
  uploaded(): string[];
  /** Asked before each request is passed on. */
  disturb(how: (request: ProxiedRequest) => Disturbance | undefined): void;
  close(): Promise<void>;
}

/** Starts one before the registry at `host`. */
export async function startRegistryProxy(host: string): Promise<RegistryProxy> {
  const requests: ProxiedRequest[] = [];
  const sockets = new Set<Socket>();
  let disturb: (request: ProxiedRequest) => Disturbance | undefined = () => undefined;

  function pass(message: IncomingMessage, response: ServerResponse): void {
    const seen = { method: message.method ?? '', path: message.url ?? '', status: 0 };
    requests.push(seen);
    const how = disturb(seen);
    if (how !== undefined && 'status' in how) {
      seen.status = how.status;
      message.resume();
      message.on('end', () => response.writeHead(how.status, how.headers).end(how.body));
      return;
    }
    if (how !== undefined && 'reset' in how) {
      message.resume();
      message.on('end', () => message.socket.resetAndDestroy());
      return;
    }
    const [hostname, port] = host.split(':');
    const { method, url: path, headers } = message;
    const upstream = httpRequest({ hostname, port, method, path, headers }, (answer) => {
      seen.status = answer.statusCode ?? 0;
      response.writeHead(seen.status, answer.headers);
      answer.pipe(response);
    });
    upstream.on('error', () => message.socket.destroy());
    response.on('error', () => undefined);
    response.on('close', () => {
      if (!response.writableFinished) upstream.destroy();
    });
    let received = 0;
    message.on('data', (chunk: Buffer) => {
      received += chunk.length;
      if (how !== undefined && received > how.cutRequestAfter) {
        upstream.destroy();
        message.socket.destroy();
      } else if (!upstream.write(chunk)) {
        message.pause();
        upstream.once('drain', () => message.resume());
      }
    });
    message.on('end', () => upstream.end());
    message.on('error', () => upstream.destroy());
  }

  const server = createServer(pass);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    host: `127.0.0.1:${port}`,
    requests,
    counts() {
      const counts: Record<string, number> = {};
      for (const { method, path } of requests) {
        const what = /\?mount=/.test(path)
          ? 'mount'
          : (/\/(manifests|blobs\/uploads|blobs|tags)\//.exec(path)?.[1] ?? path);
        const key = `${method} ${what}`;
        counts[key] = (counts[key] ?? 0) + 1;
      }
      return counts;
    },
    uploaded: () =>
      requests.flatMap(({ method, path, status }) => {
        const digest = new URL(path, 'http://x').searchParams.get('digest');
        return status === 201 && ['PUT', 'POST'].includes(method) && digest !== null ? digest : [];
      }),
    disturb: (how) => void (disturb = how),
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
