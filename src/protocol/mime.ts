const TEXT = /^(?:text\/.*|application\/(?:json|javascript|xml)|.*\+(?:json|xml))$/

/** True if content of a MIME type travels as text; anything else travels in base64. The harness has the same rule. */
export function isTextType(mimeType: string): boolean {
  return TEXT.test(mimeType)
}
