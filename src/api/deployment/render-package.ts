import { createFault } from '../../core/diagnostic.js';
import { encodeDocuments } from '../../document/yaml/present.js';
import type { RenderedDeployment } from '../../cluster/documents/render-deployments.js';
import type { Session } from '../../source/session.js';
import { createDeployment, type CreateDeploymentRequest } from './create-deployment.js';
import { emptyDeployment, renderDeployments, type RenderDeploymentsOptions } from './render-deployments.js';
import { toResolved } from './resolve-documents.js';

/** Package of a catalog to render; see `createDeployment`. */
export type RenderPackageRequest = Pick<
  CreateDeploymentRequest,
  'packageName' | 'name' | 'namespace' | 'versionRange' | 'channels'
>;

/**
 * Resolves the bundle of a package as OLM v1 does, and renders the BundleDeployment that `createDeployment` writes for it.
 * With `findInstalled`, an installed bundle is upgraded along the channels. Throws OpmateError.
 */
export async function renderPackage(
  request: RenderPackageRequest,
  session: Session,
  options: RenderDeploymentsOptions = {},
): Promise<RenderedDeployment[]> {
  const { packageName, name = packageName, namespace } = request;
  const installed = await options.findInstalled?.({ name, namespace });
  const { resolution, documents, comments } = await createDeployment(
    { ...request, kind: 'BundleDeployment', installed: installed && toResolved(installed) },
    options.catalogs ?? [],
    session,
  );
  if (documents.length === 0) {
    const finding = createFault('resolution', resolution.reason, { subject: `package ${packageName}` });
    return [{ ...emptyDeployment, name, findings: [finding], warnings: [] }];
  }
  const content = Buffer.from(encodeDocuments(documents, comments));
  const rendered = await renderDeployments([{ name: packageName, content }], session, options);
  return rendered.map((deployment) => ({ ...deployment, choice: comments }));
}
