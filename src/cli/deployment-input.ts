/* eslint-disable @typescript-eslint/no-unused-vars */
import { OpmateError } from '../core/errors.js';
import type { RenderedDeployment } from '../deployment/rendered-deployment.js';
import type { CommandContext, GlobalOptions } from './context.js';
import type { CommandSession } from './session.js';

/** What commands about deployments are given, besides what all commands are. */
export interface DeploymentOptions extends GlobalOptions {
  /** Files of documents; `-` for stdin. */
  file?: string[];
  installNamespace?: string;
  watchNamespace?: string[];
  certProvider?: string;
  config?: string;
  /** Directory of Secret manifests. */
  secrets?: string;
  /** Directory of ConfigMap manifests. */
  configMaps?: string;
  lock?: string;
  requireDigest?: boolean;
}

/**
 * Renders all deployments in the files that the user named: sorted by namespace and name, with what is wrong with
 * each. Throws OpmateError where a file cannot be read.
 */
export function renderDeploymentFile(
  _context: CommandContext,
  _session: CommandSession,
  _options: DeploymentOptions,
): Promise<RenderedDeployment[]> {
  return Promise.reject(new OpmateError('UNSUPPORTED', 'deployments: not rendered yet'));
}
