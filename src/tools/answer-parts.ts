import type { ShownFile } from './answer-files.ts'

/** The output of a tool in the form of the AI SDK. */
export type ModelOutput = { type: 'json'; value: never } | { type: 'content'; value: ModelPart[] }

type ModelPart =
  | { type: 'text'; text: string }
  | { type: 'file'; data: { type: 'data'; data: string }; mediaType: string; filename: string }

/** A block of the result of an MCP tool. */
export type McpBlock =
  | { type: 'text'; text: string }
  | { type: 'image'; data: string; mimeType: string }
  | {
      type: 'resource'
      resource: { uri: string; mimeType: string; text: string } | { uri: string; mimeType: string; blob: string }
    }

/** The answer, followed by its texts and images. A binary file is only named, because few models accept binary files. */
export function modelOutputOf(answer: object, files: readonly ShownFile[]): ModelOutput {
  const parts = files.flatMap((file): ModelPart[] => {
    if (file.kind === 'binary') return []
    if (file.kind === 'text') return [{ type: 'text', text: `${JSON.stringify(file.path)}:\n${file.text}` }]
    const data = { type: 'data' as const, data: file.data }
    return [{ type: 'file', data, mediaType: file.type, filename: file.path }]
  })
  if (parts.length === 0) return { type: 'json', value: answer as never }
  return { type: 'content', value: [{ type: 'text', text: JSON.stringify(answer) }, ...parts] }
}

/** An image as a block of its own, anything else as a resource. */
export function mcpBlockOf(file: ShownFile): McpBlock {
  const { path, type: mimeType } = file
  if (file.kind === 'image') return { type: 'image', data: file.data, mimeType }
  const uri = `sandbox:///${path.split('/').map(encodeURIComponent).join('/')}`
  const content = file.kind === 'text' ? { text: file.text } : { blob: file.data }
  return { type: 'resource', resource: { uri, mimeType, ...content } as never }
}
