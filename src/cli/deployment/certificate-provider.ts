import { type CertificateProvider, certificateProviders } from '../../bundle/plain/certificates.js';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';

/** The value of `--cert-provider`. Throws UsageError. */
export function certificateProviderOf(text: string): CertificateProvider {
  const provider = certificateProviders.find((known) => known === text);
  if (provider !== undefined) return provider;
  throw new UsageError(
    `invalid --cert-provider value ${quoteGo(text)}, expected (${certificateProviders.join('|')})`,
  );
}
