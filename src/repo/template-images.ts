import type { Template } from '../catalog/template/template.js';
import type { SourceSession } from '../source/session.js';
import { type CatalogMapping, templateTypes } from './ci-config.js';
import { withTemplate } from './rendered-template.js';
import { type OperatorRepository, pathIn, requireInRepository } from './repository.js';

/** A bundle image in a template. */
interface NamedImage {
  image: string;
  /** Name of the bundle, which entries of a basic template may have. */
  name: string | undefined;
}

/** Returns the bundle images of a template that `ci.yaml` maps. Throws OpmateError. */
export async function listTemplateImages(
  repository: OperatorRepository,
  operator: string,
  { templateName, type }: CatalogMapping,
  session: SourceSession,
): Promise<NamedImage[]> {
  const file = pathIn(repository, 'operators', operator, 'catalog-templates', templateName);
  await requireInRepository(repository, file);
  return withTemplate(file, session, { type: templateTypes[type as keyof typeof templateTypes] }, listImages);
}

function listImages(template: Template): NamedImage[] {
  if (template.type === 'semver') return template.bundles.map(({ image }) => ({ image, name: undefined }));
  return template.entries.flatMap(({ blob }) =>
    blob.kind === 'bundle' ? [{ image: blob.blob.image, name: blob.blob.name || undefined }] : [],
  );
}
