/* Reading the words of nodes into a graph's arrays: one pass that checks operations, lengths, dims,
 * arguments and shapes. Nothing of the words is trusted. */
#ifndef VPPS_DECODE_H
#define VPPS_DECODE_H

#include "shape.h"

/* An operation, as the decoder sees it. */
typedef struct {
  int8_t args;    /* -1: their number is on the wire */
  uint8_t attrs;  /* attribute words */
  uint8_t known;  /* there is such an operation */
  uint8_t same;   /* arguments of one dim give a result of this dim, whatever the attributes are */
  uint8_t leaf;   /* it reads a parameter or input words */
  uint16_t shape; /* bit k: the shape depends on attribute k */
} vpps_format;

/* A node that the shape rules have accepted: all that its shape depends on. */
enum { VPPS_KEY = 7, VPPS_ACCEPTED = 256 };
typedef struct {
  uint64_t epoch; /* a node of another epoch does not count */
  uint32_t head, nargs;
  uint32_t key[VPPS_KEY]; /* the dims of its arguments, its attributes or 0 */
} vpps_accepted;

/* A node's words. */
typedef struct {
  uint32_t head, nargs, nattrs, shape;
  const uint32_t *args, *attrs;
} vpps_node;

/* A graph's arrays, with room for all that the words may bring. */
typedef struct {
  uint8_t *op;
  uint32_t *dim, *arg_start, *args, *attr_start, *attrs;
  uint32_t *leaves; /* gets the numbers of new nodes that are leaves */
} vpps_arrays;

/* The numbers of the graph's arguments and attributes, and of new leaves. If a node was refused, op
 * is its operation. */
typedef struct {
  uint32_t args, attrs, leaves, op;
} vpps_read;

static inline int64_t vpps_refuse(vpps_read *read, uint32_t op, uint32_t node, char *msg,
                                  size_t size, const char *format, uint32_t a, uint32_t b) {
  read->op = op;
  snprintf(msg, size, format, (unsigned)a, (unsigned)b);
  return node;
}

static inline int vpps_is_like(const vpps_node *n, const vpps_accepted *a,
                               const uint32_t *node_dims) {
  if (a->head != n->head || a->nargs != n->nargs)
    return 0;
  for (uint32_t i = 0; i < n->nargs; i++)
    if (a->key[i] != node_dims[n->args[i]])
      return 0;
  for (uint32_t i = 0; i < n->nattrs; i++)
    if ((n->shape >> i & 1) && a->key[n->nargs + i] != n->attrs[i])
      return 0;
  return 1;
}

/* Remembers a node, unless it has too many words. */
static inline void vpps_accept(const vpps_node *n, vpps_accepted *a, uint64_t epoch,
                               const uint32_t *node_dims) {
  if (n->nargs + n->nattrs > VPPS_KEY)
    return;
  a->epoch = epoch;
  a->head = n->head;
  a->nargs = n->nargs;
  for (uint32_t i = 0; i < n->nargs; i++)
    a->key[i] = node_dims[n->args[i]];
  for (uint32_t i = 0; i < n->nattrs; i++)
    a->key[n->nargs + i] = n->attrs[i];
}

/* Whether the shape rules give a node its dim. Returns 0; 1 with the reason in msg; 2 if there is
 * no memory. */
static inline int vpps_check_node(const vpps_node *n, const vpps_dim *dims,
                                  const uint32_t *node_dims, char *msg, size_t size) {
  const uint32_t op = n->head & 0xff, nargs = n->nargs;
  const vpps_dim *wire = &dims[n->head >> 8], *few[16], **list = few;
  int bad = 1;
  if (nargs > 16)
    list = (const vpps_dim **)calloc(nargs, sizeof *list);
  if (list == NULL) {
    snprintf(msg, size, "no memory for a node with %u arguments", (unsigned)nargs);
    return 2;
  }
  for (uint32_t i = 0; i < nargs; i++)
    list[i] = &dims[node_dims[n->args[i]]];
  vpps_dim dim = *wire;
  if (vpps_infer_dim(op, list, nargs, n->attrs, &dim, msg, size) == 0) {
    bad = !vpps_same_dim(&dim, wire);
    if (bad) {
      char reason[160] = "the node's dim must be ";
      size_t at = strlen(reason);
      vpps_print_dim(reason, sizeof reason, &at, &dim);
      if (at < sizeof reason) {
        at += (size_t)snprintf(reason + at, sizeof reason - at, ", not ");
        vpps_print_dim(reason, sizeof reason, &at, wire);
      }
      vpps_bad_shape(op, list, nargs, reason, msg, size);
    }
  }
  if (list != few)
    free((void *)list);
  char *reason = bad ? strstr(msg, ": ") : NULL; /* the caller adds the operation's name */
  if (reason != NULL)
    memmove(msg, reason + 2, strlen(reason + 2) + 1);
  return bad;
}

/* Reads count nodes, of which the first has the number first. Returns -1, or the number of a node
 * that is refused with the reason in msg, or -2 if there is no memory. Faults of words count before
 * those of shapes. */
static inline int64_t vpps_decode(const uint32_t *words, size_t size, uint32_t first,
                                  uint32_t count, const vpps_dim *dims, uint32_t dim_count,
                                  const vpps_format *formats, vpps_accepted *accepted,
                                  uint64_t epoch, vpps_arrays g, vpps_read *read, char *msg,
                                  size_t room) {
  const uint32_t *end = words + size;
  uint32_t *args = g.args + read->args, *attrs = g.attrs + read->attrs;
  int64_t bad = -1;
  for (uint32_t node = first; node < first + count; node++) {
    if (words == end)
      return vpps_refuse(read, 0, node, msg, room, "the words end before it", 0, 0);
    uint32_t head = words[0], op = head & 0xff, id = head >> 8;
    vpps_format f = formats[op];
    if (!f.known)
      return vpps_refuse(read, op, node, msg, room,
                         "unknown operation: the program is newer than the library", 0, 0);
    if (id >= dim_count)
      return vpps_refuse(read, op, node, msg, room, "dim %u of %u", id, dim_count);
    const uint32_t *w = words + 1;
    size_t left = (size_t)(end - w);
    uint32_t nargs = (uint32_t)f.args;
    if (f.args < 0) {
      nargs = left > 0 ? *w++ : 0;
      if (left-- == 0 || nargs > left)
        return vpps_refuse(read, op, node, msg, room, "the words end inside it", 0, 0);
    }
    if ((size_t)nargs + f.attrs > left)
      return vpps_refuse(read, op, node, msg, room, "the words end inside it", 0, 0);
    uint32_t h = head, others = 0;
    for (uint32_t i = 0; i < nargs; i++) {
      uint32_t a = w[i];
      if (a >= node)
        return vpps_refuse(read, op, node, msg, room, "argument %u is not an earlier node", a, 0);
      uint32_t d = g.dim[a];
      args[i] = a;
      others |= d ^ id;
      h = h * 37 + d;
    }
    args += nargs;
    w += nargs;
    for (uint32_t i = 0; i < f.attrs; i++) {
      attrs[i] = w[i];
      h = h * 37 + (f.shape >> i & 1 ? w[i] : 0);
    }
    attrs += f.attrs;
    g.op[node] = (uint8_t)op;
    g.dim[node] = id;
    g.arg_start[node + 1] = (uint32_t)(args - g.args);
    g.attr_start[node + 1] = (uint32_t)(attrs - g.attrs);
    if (f.leaf)
      g.leaves[read->leaves++] = node;
    if ((!f.same || others != 0 || nargs == 0) && bad == -1) {
      vpps_accepted *like = &accepted[h * 0x9e3779b1u >> 24];
      vpps_node n = {head, nargs, f.attrs, f.shape, w - nargs, w};
      if (like->epoch != epoch || !vpps_is_like(&n, like, g.dim)) {
        int fault = vpps_check_node(&n, dims, g.dim, msg, room);
        if (fault == 0)
          vpps_accept(&n, like, epoch, g.dim);
        else
          bad = fault == 1 ? (int64_t)node : -2;
        read->op = op;
      }
    }
    words = w + f.attrs;
  }
  if (words != end)
    return vpps_refuse(read, 0, first + count, msg, room, "%u words behind the last of %u nodes",
                       (uint32_t)(end - words), count);
  read->args = (uint32_t)(args - g.args);
  read->attrs = (uint32_t)(attrs - g.attrs);
  return bad;
}

#endif
