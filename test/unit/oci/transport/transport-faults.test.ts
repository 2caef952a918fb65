import { describe, expect, it } from 'vitest';
import { getRegistryHints } from '../../../../src/oci/registry/host-agents.js';
import { describeFault } from '../../../../src/oci/transport/transport-faults.js';

describe('oci/transport-faults', () => {
  const url = new URL('https://registry.test/v2/');
  const route = { trustPaths: [], proxy: 'proxy.test:3128' };
  const ssl = (text: string): string =>
    `80DC:error:0A000438:SSL routines:ssl3_read_bytes:${text}:../s3.c:1605:`;

  it.each([
    ['EAI_AGAIN', 'getaddrinfo EAI_AGAIN registry.test', true, 'host name could not be looked up for now'],
    ['ENOTFOUND', 'getaddrinfo ENOTFOUND registry.test', false, 'host not found'],
    ['ETIMEDOUT', 'connect ETIMEDOUT', true, 'connection timed out'],
    [
      'ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR',
      ssl('tlsv1 alert internal error'),
      true,
      'tlsv1 alert internal error',
    ],
    ['ERR_SSL_BAD_RECORD_MAC', ssl('bad record mac'), true, 'bad record mac'],
    [
      'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE',
      ssl('sslv3 alert handshake failure'),
      false,
      'handshake failure',
    ],
    ['EPROTO', ssl('unsupported protocol'), false, 'unsupported protocol'],
    ['EPROTO', ssl('wrong version number'), false, 'speaks plain HTTP'],
    ['CERT_HAS_EXPIRED', 'certificate has expired', false, 'the certificate has expired'],
    ['HPE_INVALID_CONSTANT', 'Parse Error: Expected HTTP/', false, 'invalid HTTP response: Parse Error'],
    ['HPE_INVALID_EOF_STATE', 'Parse Error', true, 'request failed'],
    ['HPE_INVALID_CHUNK_SIZE', 'Parse Error', true, 'request failed'],
    ['', 'something new', true, 'request failed'],
  ])('%s, %s: temporary %s', async (code, reason, temporary, text) => {
    const error = Object.assign(new Error(`request to https://u:secret@x/?sig=y failed, reason: ${reason}`), {
      code,
    });
    const fault = await describeFault(error, url, route);
    expect(fault.temporary).toBe(temporary);
    expect(fault.message).toMatch(/^registry\.test: [^\n]+$/);
    expect(fault.message).toContain(text);
    const { stack, message } = fault.cause as Error;
    expect(`${fault.message} ${stack} ${message}`).not.toContain('secret');
  });

  it('speaks of authorities only where one is missing, and names each place once', async () => {
    const faultOf = (code: string) =>
      describeFault(Object.assign(new Error('x'), { code }), url, {
        ...route,
        trustPaths: ['a', 'b', 'a'],
        hints: getRegistryHints(),
      });
    const untrusted = await faultOf('UNABLE_TO_VERIFY_LEAF_SIGNATURE');
    expect(untrusted.message).not.toContain('authorities');
    expect((untrusted.cause as Error).message).toMatch(/; authorities taken from a, b$/);
    expect(untrusted.hint).toContain('registry.caFile');
    for (const code of ['ERR_TLS_CERT_ALTNAME_INVALID', 'CERT_HAS_EXPIRED']) {
      const wrong = await faultOf(code);
      expect((wrong.cause as Error).message).not.toContain('authorities');
      expect(wrong.hint).not.toContain('registry.caFile');
    }
  });
});
