"""The group coordinator: groups and committed offsets, on ``__consumer_offsets``.

classic/            a classic group: its states, the life of its members, its records
consumer/           a consumer group (KIP-848): heartbeats, assignment, records
conversion/         groups with members of both protocols, from one kind to the other
offsets/            committed offsets: commit, fetch, delete
classic_protocol    JoinGroup, SyncGroup, Heartbeat, LeaveGroup, for both kinds of groups
administration      ListGroups, the two describes, DeleteGroups
group_shard         what one partition holds; sessions: what begins and ends with it
machine             requests and metadata in, effects out
"""
