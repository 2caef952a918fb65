import { options, type VNode } from 'preact';
import { printable } from '../../core/printable.js';

/** Attributes that browsers or screen readers show. */
const shownAttributes = ['title', 'aria-label', 'alt', 'placeholder'];

/**
 * Escapes control characters in all texts of the page: text from catalogs could hide characters or change the direction
 * of other text. `<bdi>` and the style sheet isolate values within sentences.
 */
export function showPrintableText(): void {
  const next = options.vnode;
  options.vnode = (vnode) => {
    const props = vnode.props as Record<string, unknown>;
    const { children } = props;
    if (typeof children === 'string') props['children'] = printable(children);
    else if (Array.isArray(children) && children.some(isText)) {
      props['children'] = children.map((child: unknown) => (isText(child) ? printable(child) : child));
    }
    if (isElement(vnode)) {
      for (const name of shownAttributes) {
        const value = props[name];
        if (isText(value)) props[name] = printable(value);
      }
    }
    next?.(vnode);
  };
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isElement({ type }: VNode): boolean {
  return typeof type === 'string';
}
