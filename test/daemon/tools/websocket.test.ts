import { onDocker } from '../../sandbox/tools/on-engine.ts'
import { webSocketTests } from '../../sandbox/tools/websocket.ts'

await onDocker(webSocketTests)
