import { type Markers, withSection } from '../../test/support/page-section.ts'

/** A part of a page that `npm run docs` writes between its markers. The rest of the page is written by hand. */
export interface GeneratedSection {
  /** Path of the page from the root of the tree. */
  readonly page: string
  /** The section stands between `<!-- generated: NAME -->` and `<!-- end of NAME -->`. */
  readonly name: string
  /** The Markdown between the markers. */
  readonly text: () => string
}

/**
 * Replaces the section of a page.
 * @throws Error for a page without the markers.
 */
export function withGenerated(page: string, { name, text }: GeneratedSection): string {
  return withSection(page, markersOf(name), text())
}

function markersOf(name: string): Markers {
  return { begin: `<!-- generated: ${name} -->`, end: `<!-- end of ${name} -->` }
}
