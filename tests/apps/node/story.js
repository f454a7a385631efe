// KafkaJS on a cluster: node story.js SERVERS [CA USER PASSWORD]. One line of JSON for each part of the story.
const fs = require('fs')
const { Kafka, logLevel, CompressionTypes, ConfigResourceTypes } = require('kafkajs')

const [servers, ca, username, password] = process.argv.slice(2)
const secured = ca ? { ssl: { ca: [fs.readFileSync(ca, 'utf-8')] }, sasl: { mechanism: 'scram-sha-512', username, password } } : {}
const kafka = new Kafka({ clientId: 'story', brokers: servers.split(','), logLevel: logLevel.ERROR, ...secured })
const tell = (part, what) => console.log(JSON.stringify({ part, ...what }))

async function administer() {
  const admin = kafka.admin()
  await admin.connect()
  const created = await admin.createTopics({ topics: [{ topic: 'orders', numPartitions: 3, replicationFactor: 3 }], waitForLeaders: true })
  await admin.createPartitions({ topicPartitions: [{ topic: 'orders', count: 4 }] })
  await admin.alterConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: 'orders', configEntries: [{ name: 'retention.ms', value: '60000' }] }] })
  const configs = await admin.describeConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: 'orders', configNames: ['retention.ms'] }] })
  const cluster = await admin.describeCluster()
  const metadata = await admin.fetchTopicMetadata({ topics: ['orders'] })
  tell('admin', {
    created, brokers: cluster.brokers.length, partitions: metadata.topics[0].partitions.length,
    retention: configs.resources[0].configEntries[0].configValue,
  })
  await admin.disconnect()
}

async function produce() {
  const producer = kafka.producer({ idempotent: true })
  await producer.connect()
  for (let batch = 0; batch < 10; batch++)
    await producer.send({ topic: 'orders', acks: -1, compression: CompressionTypes.GZIP, messages: Array.from({ length: 20 }, (_, n) => ({ key: `k${n}`, value: `order ${batch * 20 + n}` })) })
  await producer.disconnect()
}

// Consume what is there as a member of a group, then leave.
async function consume(groupId, count) {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 10000 })
  const values = []
  await consumer.connect()
  await consumer.subscribe({ topics: ['orders'], fromBeginning: true })
  await new Promise((done, fail) => {
    consumer.on(consumer.events.CRASH, event => fail(event.payload.error))
    consumer.run({ eachMessage: async ({ message }) => { if (values.push(message.value.toString()) === count) done() } })
  })
  await consumer.disconnect()
  return values
}

async function transact() {
  const producer = kafka.producer({ transactionalId: 'story', maxInFlightRequests: 1, idempotent: true })
  await producer.connect()
  for (const [value, end] of [['kept', 'commit'], ['dropped', 'abort'], ['kept too', 'commit']]) {
    const transaction = await producer.transaction()
    await transaction.send({ topic: 'orders', messages: [{ value }] })
    await transaction.sendOffsets({ consumerGroupId: 'transacted', topics: [{ topic: 'orders', partitions: [{ partition: 0, offset: '1' }] }] })
    await transaction[end]()
  }
  await producer.disconnect()
}

async function main() {
  await administer()
  await produce()
  tell('group', { values: await consume('readers', 200) })
  await transact()
  tell('after', { values: await consume('readers', 2) })
  tell('all', { values: await consume('others', 202) })
  const admin = kafka.admin()
  await admin.connect()
  const groups = (await admin.listGroups()).groups.map(group => group.groupId).sort()
  await admin.deleteGroups(['readers'])
  const offsets = await admin.fetchOffsets({ groupId: 'transacted', topics: ['orders'] })
  const left = (await admin.listGroups()).groups.map(group => group.groupId).sort()
  await admin.deleteTopics({ topics: ['orders'] })
  tell('end', { groups, left, offset: offsets[0].partitions.find(p => p.partition === 0).offset, topics: await admin.listTopics() })
  await admin.disconnect()
}

main().catch(error => { console.error(error); process.exit(1) })
