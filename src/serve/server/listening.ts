import type { AddressInfo, Server } from 'node:net';
import { OpmateError, systemCode, systemReason } from '../../core/errors.js';

/** Where a server listens. */
export interface ListenAddress {
  /** All addresses, IPv6 included where the machine has it, when left out. */
  host?: string | undefined;
  /** 0 takes a free one. */
  port: number;
}

/** Makes a server listen; returns its port. `flag` is the option that sets the address. Throws OpmateError IO. */
export async function listenOn(server: Server, address: ListenAddress, flag = '--port'): Promise<number> {
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
        ? `use another port with ${flag}, or stop the process that listens there`
        : `use another address or port with ${flag}`;
    throw new OpmateError('IO', `listen ${shownAddress(address)}: ${systemReason(cause)}`, { cause, hint });
  }
}

/** `HOST:PORT`, an IPv6 address in brackets; `:PORT` where it is all addresses. */
export function shownAddress({ host, port }: ListenAddress): string {
  return `${host?.includes(':') ? `[${host}]` : (host ?? '')}:${port}`;
}

/** How a server on this machine is reached. */
export function getUrl(server: Server, host: string, isSecure: boolean): string {
  const { port } = server.address() as AddressInfo;
  const isAny = host === '::' || host === '0.0.0.0';
  return `${isSecure ? 'https' : 'http'}://${shownAddress({ host: isAny ? 'localhost' : host, port })}`;
}
