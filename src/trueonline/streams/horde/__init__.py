"""The memory of a horde: weights for every question, and one trace for all questions that can share it.

A trace depends on the features, γ, λ, α and the kind of trace. It does not depend on the signal that is predicted. So all
questions with the same γ, λ, α and method form a *group*, and a group has one trace. The weights w_iq of all questions q lie
beside each other for each feature i. As in `core.memory`, every change of a whole trace or weight vector is postponed: a
scalar s for each group and a scalar c_q for each question hold what the traced features still owe. e ← g·e becomes s ← g·s,
and w_q ← w_q + k_q·e becomes c_q ← c_q + k_q·s.

As s shrinks, digits are lost. Paying all debts whenever s falls below EDGE would be the most expensive part of a step, because
it visits all traced features and all questions. So the time of a group is divided into *ages*. The end of an age pays nothing.
It records on the *page* of each age k what the features of that age owe: D_kq for each unit of z, and P_k, the factor by which
their traces have faded since.

    e_i = s·P_k·z_i        w_iq = u_iq + (D_kq + P_k·c_q)·z_i        where feature i was last settled in age k

| operation                      | what it costs                                                                        |
|--------------------------------|--------------------------------------------------------------------------------------|
| read all answers               | the sums above over the active features                                              |
| settle an active feature       | u_iq ← u_iq + D_kq·z_i, z_i ← P_k·z_i, and k becomes the present age m: P_m = 1, D_m = 0 |
| e ← e + a·x, w_q ← w_q + b_q·x | z_i ← z_i + (a/s)·x_i, u_iq ← u_iq + (b_q − c_q·a/s)·x_i over the active features    |
| end an age                     | D_k ← D_k + P_k·c and P_k ← s·P_k for every page, then c ← 0, s ← 1 and m ← m + 1    |

A page is closed once its P has fallen below DROP, because such a trace can no longer change a weight. Pages are reused in turn.
So the end of each age also settles a few features, active or not, so that every feature is settled before its page is reused.

A step passes over the weights once. It changes the weights of the features that were active and reads those of the features
that are active now, and does both together for a feature that is in both sets.

A feature gets a *row* of the memory when it is first seen. So the memory grows with the features seen, not with all features.

| file            | content                                                                  |
|-----------------|--------------------------------------------------------------------------|
| `layout`        | the arrays, and the numbers of their slots                               |
| `ages`          | kernels: settle features and end ages                                    |
| `updates`       | kernels: learn from one transition                                       |
| `entry_points`  | compiled functions that Python calls: step, run, check, predict, settle  |
| `buffers`       | allocating arrays, and making room for more features and questions       |
| `dense_copies`  | the weights and the trace of one question, as dense vectors              |
| `saved_state`   | the arrays that a file keeps, and the checks when they are read back     |
"""
