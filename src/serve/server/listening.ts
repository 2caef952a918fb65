import type { AddressInfo, Server } from 'node:net';
import { OpmateError, systemCode, systemReason } from '../../core/errors.js';

/** Address of a server. */
export interface ListenAddress {
  /** Default all addresses, including IPv6. */
  host?: string | undefined;
  /** 0 selects a free one. */
  port: number;
}

/** Starts listening. Returns the port. `option` sets the address, for hints. Throws OpmateError IO. */
export async function listenOn(
  server: Server,
  address: ListenAddress,
  option = 'options.port',
): Promise<number> {
  const { host, port } = address;
  try {
    return await new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen({ port, host }, () => {
        server.off('error', reject);
        resolve((server.address() as AddressInfo).port);
      });
    });
  } catch (cause) {
    const hint =
      systemCode(cause) === 'EADDRINUSE'
        ? `use another port with ${option}, or stop the process that listens there`
        : `use another address or port with ${option}`;
    throw new OpmateError('IO', `listen ${formatAddress(address)}: ${systemReason(cause)}`, { cause, hint });
  }
}

/** Formats `HOST:PORT`, an IPv6 address in brackets; `:PORT` for all addresses. */
export function formatAddress({ host, port }: ListenAddress): string {
  return `${host?.includes(':') ? `[${host}]` : (host ?? '')}:${port}`;
}

/** Returns the URL of a server on this machine. */
export function getServerUrl(server: Server, host: string, isSecure: boolean): string {
  const { port } = server.address() as AddressInfo;
  const isAny = host === '::' || host === '0.0.0.0';
  return `${isSecure ? 'https' : 'http'}://${formatAddress({ host: isAny ? 'localhost' : host, port })}`;
}
