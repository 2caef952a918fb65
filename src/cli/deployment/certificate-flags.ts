import { certificateProviders } from '../../bundle/plain/registry-v1/certificates.js';
import { choice } from '../command/flags.js';

/** Flag for the certificate provider of webhooks. */
export const certificateFlags = {
  certProvider: choice('provider', certificateProviders, 'certificate provider of webhooks', {
    default: 'none',
    group: 'Cluster',
  }),
};
