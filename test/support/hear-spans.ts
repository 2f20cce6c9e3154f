import { tracingChannel } from 'node:diagnostics_channel'

/** A span that has ended: its name and its attributes at its end. */
export type EndedSpan = readonly [name: string, attributes: Record<string, unknown>]

const NAMES = ['create', 'cleanup', 'stage.files', 'stage.dir', 'run', 'collect', 'inline']

/** The spans of workspaces that end until the result is disposed of. */
export function hearSpans(): Disposable & { readonly ended: EndedSpan[] } {
  const ended: EndedSpan[] = []
  const ignore = (): void => undefined
  const subscriptions = NAMES.map((name) => {
    const channel = tracingChannel<object, object>(`sandglass:workspace.${name}`)
    const asyncEnd = (message: object): void => void ended.push([name, { ...message }])
    const handlers = { start: ignore, end: ignore, asyncStart: ignore, error: ignore, asyncEnd }
    channel.subscribe(handlers)
    return { channel, handlers }
  })
  return {
    ended,
    [Symbol.dispose]: () => {
      for (const { channel, handlers } of subscriptions) channel.unsubscribe(handlers)
    },
  }
}
