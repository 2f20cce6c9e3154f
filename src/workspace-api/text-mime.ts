/** True if a MIME type is a text that can be shown as UTF-8: `text/*`, `application/json`, `*+json`; parameters do not count. */
export function isTextMime(mimeType: string): boolean {
  const [type = ''] = mimeType.split(';', 1)
  return /^(?:text\/.+|application\/json|[^/]+\/.+\+json)$/.test(type.trim().toLowerCase())
}
