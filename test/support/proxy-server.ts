/** A proxy for tests: CONNECT tunnels and plain HTTP. Every name that it is asked for is this machine. */
import { createServer, type IncomingMessage, request as httpRequest } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

export interface ProxyServer {
  host: string;
  /** What was asked for: `CONNECT host:port` or `GET http://…`. */
  requests: string[];
  /** `Proxy-Authorization` values. */
  credentials: string[];
  close(): Promise<void>;
}

export interface ProxyServerOptions {
  /** `user:password` that must be given. */
  require?: string;
  /** Answers every request with this status, and with these header lines. */
  refuse?: { status: number; headers?: string[] };
  /** Replies with this text, which is not HTTP, to CONNECT. */
  garbage?: string;
  /** Never answers. */
  hang?: boolean;
}

export async function startProxyServer(options: ProxyServerOptions = {}): Promise<ProxyServer> {
  const requests: string[] = [];
  const credentials: string[] = [];
  const sockets = new Set<Socket>();

  function verdict(message: IncomingMessage): { status: number; headers?: string[] } | undefined {
    const given = message.headers['proxy-authorization'];
    if (given !== undefined) credentials.push(given);
    if (options.refuse) return options.refuse;
    const wanted = options.require && `Basic ${Buffer.from(options.require).toString('base64')}`;
    return wanted && given !== wanted ? { status: 407, headers: ['Proxy-Authenticate: Basic'] } : undefined;
  }

  const server = createServer((message, response) => {
    requests.push(`${message.method} ${message.url}`);
    const refused = verdict(message);
    if (refused) return void response.writeHead(refused.status).end();
    const url = new URL(message.url ?? '');
    const onward = httpRequest(
      {
        host: '127.0.0.1',
        port: url.port,
        path: url.pathname,
        method: message.method,
        headers: message.headers,
      },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      },
    );
    onward.on('error', () => response.destroy());
    message.pipe(onward);
  });
  server.on('connect', (message, socket: Socket) => {
    requests.push(`CONNECT ${message.url}`);
    if (options.hang) return;
    if (options.garbage !== undefined) return void socket.end(options.garbage);
    const refused = verdict(message);
    if (refused) {
      const lines = [`HTTP/1.1 ${refused.status} No`, 'Content-Length: 0', ...(refused.headers ?? [])];
      return void socket.end(`${lines.join('\r\n')}\r\n\r\n`);
    }
    const port = Number(message.url?.split(':').at(-1));
    const onward = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
    onward.on('error', () => socket.destroy());
    socket.on('error', () => onward.destroy());
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    credentials,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
