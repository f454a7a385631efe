"""Who may do what: ACLs and the authorizer, principals, SASL mechanisms, delegation tokens.

Nothing here knows a socket or a clock: time and chance come as arguments. Listeners carry what is
decided here, the metadata image holds it, handlers ask for it.
"""
