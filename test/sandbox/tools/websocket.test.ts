import { onLocal } from './on-engine.ts'
import { webSocketTests } from './websocket.ts'

await onLocal(webSocketTests)
