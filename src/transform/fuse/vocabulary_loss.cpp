// Logits of a product without a bias that only their cross-entropy reads, and the count of those
// that are right: vocabulary_loss makes them a few rows at a time, and they never exist whole.
#include "transform/fuse.h"
#include "transform/fusing.h"

namespace thimble {
namespace {

// Everything that reads the logits, through views.
bool read_by(const Fusing& f, ValueId logits, NodeId loss, ValueId labels,
             std::vector<ValueId>& correct) {
  if (f.readers(logits) != f.nodes_reading(logits).size()) return false;
  for (const NodeId reader : f.nodes_reading(logits)) {
    const Node& node = f.graph()[reader];
    if (node.op->view) {
      if (!read_by(f, node.outputs[0], loss, labels, correct)) return false;
    } else if (f.maker(node.outputs[0], "count_correct") != nullptr) {
      if (f.behind_views(node.inputs[1]) != f.behind_views(labels)) return false;
      correct.push_back(node.outputs[0]);
    } else if (reader != loss) {
      return false;
    }
  }
  return true;
}

bool fuse_loss(Fusing& f, NodeId root) {
  const std::vector<ValueId> in = f.graph()[root].inputs;
  const ValueId loss = f.graph()[root].outputs[0], logits = f.behind_views(in[0]);
  const Node* product = f.maker(logits, "matmul");
  if (product == nullptr || product->inputs.size() != 2) return false;
  const ValueId h = product->inputs[0], weight = product->inputs[1];
  const bool linear = product->attrs.integer("transpose_a", 0) == 0 &&
                      product->attrs.integer("transpose_b", 0) != 0 && f.shape(weight).rank() == 2;
  const Shape rows = f.shape(in[0]);
  if (!linear || rows.rank() != 2 || rows.back() != f.shape(weight)[0]) return false;
  std::vector<ValueId> correct;
  if (!read_by(f, logits, root, in[1], correct) || correct.size() > 1) return false;
  const Attrs attrs = {{"label_smoothing", f.graph()[root].attrs.real("label_smoothing", 0)},
                       {"ignore_index", f.graph()[root].attrs.integer("ignore_index", -1)}};
  const ValueId flat = f.reshaped(h, {rows[0], f.shape(h).back()});
  const std::vector<ValueId> made = f.apply("vocabulary_loss", {flat, weight, in[1], in[2]}, attrs);
  if (!correct.empty()) f.replace(correct[0], made[2]);
  f.replace(loss, made[0]);
  return true;
}

}  // namespace

extern const PatternDef pattern_vocabulary_loss{
    .name = "vocabulary_loss", .roots = {"softmax_cross_entropy"}, .fuse = fuse_loss};

}  // namespace thimble
