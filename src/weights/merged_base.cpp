#include "weights/merged_base.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/io/file.h"
#include "weights/base_weights.h"
#include "weights/checkpoint.h"
#include "weights/coded_tensors.h"
#include "weights/named_adapters.h"
#include "weights/safetensors_shards.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

// Settings and tokenizers of transformers end so.
constexpr std::array<std::string_view, 5> kBeside = {".json", ".txt", ".model", ".jinja",
                                                     ".tiktoken"};

// A weight in a file, and the adapter that is added to it.
struct Merge {
  const StoredTensor* stored;
  NamedAdapter named;
};

// scale * B A, row by row, as the file lays the weight out.
class Product {
 public:
  Product(const SafetensorsFile& file, const Graph& graph, const NamedAdapter& named, double scale)
      : scale_(static_cast<float>(scale)) {
    const Value &a = graph[named.adapter.a], &b = graph[named.adapter.b];
    rank_ = a.type.shape[0];
    const int64_t in = a.type.shape[1], out = b.type.shape[0];
    left_ = numbers_of(file, named.in_first ? a.name : b.name);
    right_ = numbers_of(file, named.in_first ? b.name : a.name);
    rows_ = named.in_first ? in : out;
    columns_ = named.in_first ? out : in;
    sums_.resize(static_cast<size_t>(columns_));
    if (named.in_first) {
      turn(left_, rank_, rows_);
      turn(right_, columns_, rank_);
    }
  }

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }

  // Good until the next. Sums are rounded to f32 at every term, as those of PEFT's product are:
  // where a weight and what is added all but cancel, no other order gives its numbers.
  const std::vector<float>& row(int64_t r) {
    std::ranges::fill(sums_, 0.0F);
    for (int64_t k = 0; k < rank_; ++k) {
      const double factor = left_[static_cast<size_t>(r * rank_ + k)];
      const float* const from = right_.data() + k * columns_;
      for (size_t c = 0; c < sums_.size(); ++c) {
        sums_[c] = static_cast<float>(sums_[c] + factor * from[c]);
      }
    }
    for (float& sum : sums_) sum *= scale_;
    return sums_;
  }

 private:
  // [rows, columns] becomes [columns, rows].
  static void turn(std::vector<float>& numbers, int64_t rows, int64_t columns) {
    std::vector<float> turned(numbers.size());
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        turned[static_cast<size_t>(c * rows + r)] = numbers[static_cast<size_t>(r * columns + c)];
      }
    }
    numbers = std::move(turned);
  }

  const float scale_;
  int64_t rank_ = 0, rows_ = 0, columns_ = 0;
  std::vector<float> left_, right_;  // [rows, rank], [rank, columns]
  std::vector<float> sums_;
};

void copy_bytes(const ReadFile& from, int64_t begin, int64_t end, AtomicFile& to) {
  std::array<std::byte, 65536> block;
  for (int64_t at = begin; at < end;) {
    const auto part =
        std::span(block).first(static_cast<size_t>(std::min<int64_t>(end - at, std::ssize(block))));
    from.read_at(at, part);
    to.write(part);
    at += std::ssize(part);
  }
}

// Adds a row of the product to a row of the weight. False: a number left the range of its type.
bool add_row(DType dtype, const std::vector<float>& row, std::span<std::byte> weight) {
  return with_float_type(dtype, [&]<class T>(TypeTag<T>) {
    auto* const numbers = reinterpret_cast<T*>(weight.data());
    bool finite = true;
    for (size_t c = 0; c < row.size(); ++c) {
      const T sum = static_cast<T>(static_cast<float>(numbers[c]) + row[c]);
      finite = finite && std::isfinite(static_cast<float>(sum));
      numbers[c] = sum;
    }
    return finite;
  });
}

class Merging {
 public:
  explicit Merging(const AdaptedBase& from)
      : from_(from), adapters_(from.adapters), base_(from.base) {
    for (NamedAdapter& named : named_adapters(from.graph, from.foreign)) look_at(std::move(named));
    for (auto& [file, merges] : merges_) {
      std::ranges::sort(merges, {}, [](const Merge& merge) { return merge.stored->offset; });
    }
  }

  int64_t count() const { return count_; }

  void write(const fs::path& folder) const {
    const fs::path home = fs::path(base_.files().front()->path()).parent_path();
    for (const auto& file : base_.files()) {
      write_file_of_weights(*file, (folder / fs::path(file->path()).filename()).string());
    }
    const bool has_settings =
        base_.files().front()->path() != from_.base || exists((home / "config.json").string());
    if (!has_settings) return;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(home, error)) {
      const std::string name = entry.path().filename().string();
      const bool beside =
          std::ranges::any_of(kBeside, [&](std::string_view end) { return name.ends_with(end); });
      if (!beside || name == "adapter_config.json" || !entry.is_regular_file(error)) continue;
      const ReadFile settings(entry.path().string());
      AtomicFile copy((folder / name).string());
      copy_bytes(settings, 0, settings.size(), copy);
      copy.commit();
    }
  }

 private:
  // By the other program's names, with their prefix or without, or by our own.
  SafetensorsShards::Found find(NamedAdapter& named) const {
    const std::string& prefix = from_.foreign ? from_.foreign->prefix : "";
    if (named.weight.starts_with(prefix) && base_.find(named.weight).file == nullptr) {
      const SafetensorsShards::Found found = base_.find(named.weight.substr(prefix.size()));
      if (found.file != nullptr) return found;
    }
    const std::string& own = from_.graph[named.adapter.weight].name;
    if (base_.find(named.weight).file == nullptr && base_.find(own).file != nullptr) {
      named.weight = own;
      named.in_first = named.adapter.in_first;
    }
    return base_.at(named.weight);
  }

  void look_at(NamedAdapter named) {
    user_check(!named.shared,
               "'{}' is an embedding as well, to which nothing can be merged; keep its adapters "
               "apart: --adapters",
               named.weight);
    const auto [file, stored] = find(named);
    const bool coded = has_nf4(*file, stored->name);
    user_check(!coded && is_floating(stored->type.dtype),
               "'{}': '{}' is {}, to which nothing can be added; train on the folder that it was "
               "made from, with --frozen, and merge into that",
               file->path(), stored->name,
               coded ? "in 4 bits" : std::string(name_of(stored->type.dtype)));
    const int64_t in = from_.graph[named.adapter.a].type.shape[1];
    const int64_t out = from_.graph[named.adapter.b].type.shape[0];
    const Shape wanted = named.in_first ? Shape{in, out} : Shape{out, in};
    user_check(stored->type.shape == wanted,
               "'{}': '{}' is {}, and its adapters are of {}: it is another base", file->path(),
               stored->name, to_string(stored->type),
               to_string(TensorType{wanted, stored->type.dtype}));
    merges_[file].push_back({stored, std::move(named)});
    ++count_;
  }

  void write_file_of_weights(const SafetensorsFile& file, const std::string& path) const {
    const ReadFile from(file.path());
    AtomicFile to(path);
    int64_t at = 0;
    const auto known = merges_.find(&file);
    const std::span<const Merge> merges =
        known == merges_.end() ? std::span<const Merge>() : known->second;
    for (const Merge& merge : merges) {
      copy_bytes(from, at, merge.stored->offset, to);
      Product product(adapters_, from_.graph, merge.named, from_.spec.scale());
      const DType dtype = merge.stored->type.dtype;
      std::vector<std::byte> row(static_cast<size_t>(product.columns() * size_of(dtype)));
      for (int64_t r = 0; r < product.rows(); ++r) {
        file.read_part(*merge.stored, r * std::ssize(row), row);
        user_check(add_row(dtype, product.row(r), row), "'{}': merged, '{}' has numbers beyond {}",
                   file.path(), merge.stored->name, name_of(dtype));
        to.write(row);
      }
      at = merge.stored->offset + merge.stored->type.bytes().count;
    }
    copy_bytes(from, at, from.size(), to);
    to.commit();
  }

  const AdaptedBase& from_;
  const SafetensorsFile adapters_;
  const SafetensorsShards base_;
  std::map<const SafetensorsFile*, std::vector<Merge>> merges_;
  int64_t count_ = 0;
};

}  // namespace

AdaptedBase adapted_base(const Model& model, const AdapterSpec& spec, const std::string& checkpoint,
                         const std::string& run) {
  const nlohmann::json base = base_of_checkpoint(checkpoint);
  user_check(base.is_object(),
             "--merged wants a base that came from a file, and that of '{}' was drawn from the "
             "seed; export it without --merged",
             run);
  return {.graph = model.graph,
          .foreign = model.foreign,
          .spec = spec,
          .base = base_file(base, checkpoint),
          .adapters = weights_of_checkpoint(checkpoint)};
}

int64_t merge_adapters(const AdaptedBase& from, const std::string& named) {
  std::string folder = named;
  while (folder.size() > 1 && folder.ends_with('/'))
    folder.pop_back();  // what is partial is beside it
  user_check(!exists(folder), "'{}' is there already; name a folder that is not", folder);
  const Merging merging(from);
  const std::string partial = folder + ".partial";
  std::error_code ignored;
  fs::remove_all(partial, ignored);
  try {
    ensure_directory(partial);
    merging.write(partial);
  } catch (...) {
    fs::remove_all(partial, ignored);
    throw;
  }
  std::error_code error;
  fs::rename(partial, folder, error);
  user_check(!error, "cannot put the merged weights at '{}': {}", folder, error.message());
  return merging.count();
}

}  // namespace thimble
