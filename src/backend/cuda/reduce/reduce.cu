// reduce: neighbouring axes that are both kept or both reduced become one. The result is mostly
// [kept, reduced, kept], summed down its columns, or [kept, reduced], summed along its rows. Any
// other shape has a warp per result, which walks the reduced axes.
#include <limits>

#include "backend/cuda/reduce/fold_columns.cuh"
#include "backend/cuda/reduce/row_group.cuh"

namespace thimble {
namespace {

struct Largest {
  static constexpr float kNothing = -std::numeric_limits<float>::infinity();
  template <class Real>
  __device__ Real operator()(Real a, Real b) const {
    return b > a || isnan(b) ? b : a;
  }
};

template <class T>
struct WriteReduced {
  T* y;
  double divisor;  // of means
  bool add;
  __device__ void operator()(int64_t at, double value) const {
    store(y + at, static_cast<float>(value / divisor), add);
  }
};

// Row r is piece r % pieces of its tensor's row r / pieces.
struct RowPieces {
  int64_t rows, length;
  int64_t pieces = 1, each = 0;
};

template <class T, int kWide, int kThreads, class Fold, class Write>
__global__ void __launch_bounds__(kRowThreads)
    fold_rows(const T* x, RowPieces p, Fold fold, Write write) {
  const RowGroup<kThreads> group;
  for (int64_t r = group.first_row; r < p.rows * p.pieces; r += group.rows_apart) {
    const T* const row = x + r / p.pieces * p.length;
    const int64_t begin = r % p.pieces * p.each, end = min(p.length, begin + p.each);
    float own[kWide];
#pragma unroll
    for (int e = 0; e < kWide; ++e) own[e] = Fold::kNothing;
#pragma unroll 4
    for (int64_t c = begin + group.lane * kWide; c < end; c += kThreads * kWide) {
      const Vec<T, kWide> in = *reinterpret_cast<const Vec<T, kWide>*>(row + c);
#pragma unroll
      for (int e = 0; e < kWide; ++e) own[e] = fold(own[e], widen(in.at[e]));
    }
    double all = static_cast<double>(own[0]);
#pragma unroll
    for (int e = 1; e < kWide; ++e) all = fold(all, static_cast<double>(own[e]));
    all = group.fold(all, fold);
    if (group.lane == 0) write(r, all);
  }
}

template <class T, class Fold, class Write>
void launch_fold_rows(const T* x, const RowPieces& p, const Fold& fold, const Write& write,
                      const CudaDevice& device) {
  const unsigned blocks = row_blocks(p.rows * p.pieces, p.each, device);
  with_row_group(p.each, [&](auto threads) {
    with_wide(p.length, [&](auto wide) {
      fold_rows<T, wide.value, threads.value>
          <<<blocks, kRowThreads, 0, device.stream>>>(x, p, fold, write);
    });
  });
}

// Extents and strides, outermost first, of some axes of x.
struct Axes {
  int count = 0;
  int64_t extent[Shape::kMaxRank], stride[Shape::kMaxRank];

  __host__ __device__ int64_t elements() const {
    int64_t all = 1;
    for (int a = 0; a < count; ++a) all *= extent[a];
    return all;
  }
  __device__ int64_t offset(int64_t index) const {
    int64_t at = 0;
    for (int a = count - 1; a >= 0; --a) {
      at += index % extent[a] * stride[a];
      index /= extent[a];
    }
    return at;
  }
};

template <class T, class Fold, class Write>
__global__ void __launch_bounds__(kRowThreads)
    fold_walks(const T* x, Axes kept, Axes reduced, Fold fold, Write write) {
  const RowGroup<32> group;
  const int64_t results = kept.elements(), terms = reduced.elements();
  for (int64_t r = group.first_row; r < results; r += group.rows_apart) {
    const T* const from = x + kept.offset(r);
    float own = Fold::kNothing;
    for (int64_t i = group.lane; i < terms; i += 32) {
      own = fold(own, widen(from[reduced.offset(i)]));
    }
    const double all = group.fold(static_cast<double>(own), fold);
    if (group.lane == 0) write(r, all);
  }
}

// How a signature is reduced.
struct Shapes {
  Axes kept, reduced;
  bool down = false, along = false;  // [outer, rows, columns], or [rows, length]
  int64_t outer = 1;
  ColumnTiles tiles;
  RowPieces pieces;
};

Shapes shapes_of(const Signature& s, const CudaDevice& device) {
  const TensorType& x = s.inputs[0];
  uint32_t over = 0;
  for (const int64_t axis : s.attrs.integers("axes")) over |= 1u << axis;
  struct Run {
    int64_t extent;
    bool reduced;
  };
  std::vector<Run> runs;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    const bool reduced = ((over >> axis) & 1u) != 0;
    if (x.shape[axis] == 1) continue;
    if (runs.empty() || runs.back().reduced != reduced) runs.push_back({1, reduced});
    runs.back().extent *= x.shape[axis];
  }
  Shapes result;
  int64_t stride = x.elements();
  for (const Run& run : runs) {
    Axes& axes = run.reduced ? result.reduced : result.kept;
    stride = run.extent == 0 ? 0 : stride / run.extent;
    axes.extent[axes.count] = run.extent;
    axes.stride[axes.count++] = stride;
  }
  // A kept axis of extent 1 in front, and a reduced one where nothing is.
  if (runs.empty() || runs.front().reduced) runs.insert(runs.begin(), {1, false});
  if (runs.size() == 1) runs.insert(runs.begin(), {{1, false}, {1, true}});
  if (runs.size() == 3) {
    result.outer = runs[0].extent;
    if (result.outer == 1) {
      result.tiles = sum_tiles(runs[1].extent, runs[2].extent, x.dtype, 1, device);
    } else {
      result.tiles = column_tiles(runs[1].extent, runs[2].extent, x.dtype);
      if (int64_t{result.tiles.rows} * result.tiles.across < 2048) result.tiles.threads = 128;
    }
    result.down = result.tiles.strips <= 65535;  // as a grid can have
  } else if (runs.size() == 2) {
    result.along = true;
    RowPieces& p = result.pieces;
    p.rows = runs[0].extent;
    p.length = runs[1].extent;
    const int64_t busy = int64_t{device.multiprocessors} * 4 / std::max<int64_t>(p.rows, 1);
    p.pieces = std::clamp<int64_t>(p.length / (kRowThreads * 16), 1, std::max<int64_t>(busy, 1));
    p.each = (p.length + p.pieces - 1) / p.pieces;
    p.each = std::max<int64_t>((p.each + 3) / 4 * 4, 4);
  }
  return result;
}

Bytes scratch_of(const Shapes& shapes) {
  if (shapes.down) return partial_bytes(shapes.tiles, 1);
  if (!shapes.along || shapes.pieces.pieces == 1) return {};
  return Bytes(shapes.pieces.rows * shapes.pieces.pieces * int64_t{sizeof(float)});
}

template <class T, class Fold>
void launch_reduce(const T* x, const Shapes& shapes, const Fold& fold, const WriteReduced<T>& write,
                   float* partial, const CudaDevice& device) {
  if (shapes.down) {
    launch_fold_columns(x, shapes.tiles, shapes.outer, fold, write, partial, device);
  } else if (shapes.along) {
    const RowPieces& p = shapes.pieces;
    if (p.pieces == 1) return launch_fold_rows(x, p, fold, write, device);
    launch_fold_rows(x, p, fold, WritePartial{partial}, device);
    launch_fold_rows(partial, RowPieces{p.rows, p.pieces, 1, p.pieces}, fold, write, device);
  } else {
    const unsigned blocks = row_blocks(shapes.kept.elements(), 1, device);
    fold_walks<<<blocks, kRowThreads, 0, device.stream>>>(x, shapes.kept, shapes.reduced, fold,
                                                          write);
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  const Shapes shapes = shapes_of(s, device);
  const std::string_view kind = s.attrs.text("kind", "sum");
  const bool largest = kind == "max";
  const double divisor = kind == "mean" ? static_cast<double>(shapes.reduced.elements()) : 1;
  const auto launch = [&device, shapes, largest, divisor](const KernelArgs& args) {
    if (args.outputs[0].elements() == 0) return;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* const x = args.inputs[0].as<T>();
      const WriteReduced<T> write{args.outputs[0].as<T>(), divisor, args.adds_into(0)};
      float* const partial = reinterpret_cast<float*>(args.workspace);
      if (largest) {
        launch_reduce(x, shapes, Largest{}, write, partial, device);
      } else {
        launch_reduce(x, shapes, SumFold{}, write, partial, device);
      }
    });
    check_launch("reduce");
  };
  return own_kernel(launch, scratch_of(shapes));
}

}  // namespace

extern const CudaKernel cuda_reduce{"reduce", make};

}  // namespace thimble
